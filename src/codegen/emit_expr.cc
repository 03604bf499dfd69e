// Expressions and memory accesses.
#include "base/check.h"
#include "base/match.h"
#include "codegen/emit.h"

namespace ein::codegen {

using core::Op;
using llvm::Value;

Val Emitter::expr(loops::ExprId id) {
  const loops::Expr& e = p.exprs[id];
  return match(
      e.node,
      [&](const loops::FloatConst& n) {
        return uniform(llvm::ConstantFP::get(type_of(e.type), n.value));
      },
      [&](const loops::IntConst& n) {
        return uniform(llvm::ConstantInt::getSigned(type_of(e.type), n.value));
      },
      [&](const loops::Param& n) { return uniform(param(n.index)); },
      [&](const loops::Get& n) {
        if (auto it = cells.find(n.var); it != cells.end()) {
          Value* v = b.CreateLoad(it->second.at->getAllocatedType(), it->second.at);
          return it->second.lanes ? varying(v) : uniform(v);
        }
        return values.at(n.var);
      },
      [&](const loops::Apply& n) {
        std::vector<Val> args;
        bool same = true;
        for (loops::ExprId a : n.args) {
          args.push_back(expr(a));
          same &= args.back().uniform();
        }
        DType from = p.exprs[n.args[0]].type;
        if (same) {
          std::vector<Value*> scalars;
          for (const Val& a : args) scalars.push_back(a.v);
          return uniform(apply(n.op, scalars, from, e.type));
        }
        bool index = e.type == DType::I64 && args.size() == 2 &&
                     (n.op == Op::Add || n.op == Op::Sub || n.op == Op::Mul);
        if (index) return index_op(n.op, args[0], args[1]);
        std::vector<Value*> wide_args;
        for (size_t i = 0; i < args.size(); ++i) {
          // A condition that is the same for all lanes selects whole vectors.
          bool whole_select = n.op == Op::Select && i == 0 && args[0].uniform();
          wide_args.push_back(whole_select ? args[0].v : lanes(args[i], p.exprs[n.args[i]].type));
        }
        return varying(apply(n.op, wide_args, from, e.type));
      },
      [&](const loops::Overflows& n) {
        std::vector<Val> args;
        bool same = true;
        for (loops::ExprId a : n.args) {
          args.push_back(expr(a));
          same &= args.back().uniform();
        }
        DType type = p.exprs[n.args[0]].type;
        std::vector<Value*> vs;
        for (const Val& a : args) vs.push_back(same ? a.v : lanes(a, type));
        Value* out = overflows(n.op, vs, type);
        return same ? uniform(out) : varying(out);
      },
      [&](const loops::Load& n) { return load(n, e.type); });
}

Value* Emitter::param(uint32_t index) {
  Value*& v = params[index];
  if (!v) {
    Value* all = context_field(offsetof(NativeContext, params));
    v = entry.CreateLoad(b.getInt64Ty(),
                         entry.CreateConstInBoundsGEP1_64(b.getInt64Ty(), all, index));
  }
  return v;
}

Val Emitter::index_op(Op op, Val a, Val b_) {
  using S = Val::Shape;
  if (a.shape == S::Varying || b_.shape == S::Varying ||
      (op == Op::Mul && a.shape == S::Linear && b_.shape == S::Linear)) {
    Value* x = lanes(a, DType::I64);
    Value* y = lanes(b_, DType::I64);
    return varying(whole(op, {x, y}, DType::I64));
  }
  Value* zero = i64(0);
  Value* sa = a.shape == S::Linear ? a.step : zero;
  Value* sb = b_.shape == S::Linear ? b_.step : zero;
  Value* v = whole(op, {a.v, b_.v}, DType::I64);
  Value* step = op == Op::Add   ? b.CreateAdd(sa, sb)
                : op == Op::Sub ? b.CreateSub(sa, sb)
                : a.uniform()   ? b.CreateMul(a.v, sb)
                                : b.CreateMul(sa, b_.v);
  return {S::Linear, v, step};
}

Value* Emitter::scalar(loops::ExprId id) {
  Val v = expr(id);
  EIN_CHECK(v.uniform(), "a value differs between lanes where it must not");
  return v.v;
}

Value* Emitter::lanes(Val v, DType type) {
  if (width == 1 || v.shape == Val::Shape::Varying) return v.v;
  Value* splat = b.CreateVectorSplat(width, v.v);
  if (v.uniform()) return splat;
  EIN_CHECK(type == DType::I64, "a linear value is not an index");
  std::vector<llvm::Constant*> counts;
  for (uint32_t i = 0; i < width; ++i) counts.push_back(i64(i));
  Value* steps = b.CreateMul(b.CreateVectorSplat(width, v.step), llvm::ConstantVector::get(counts));
  return b.CreateAdd(splat, steps);
}

Value* Emitter::lanes(loops::ExprId id) { return lanes(expr(id), p.exprs[id].type); }

Value* Emitter::full_mask() {
  if (mask) return mask;
  return llvm::Constant::getAllOnesValue(llvm::FixedVectorType::get(b.getInt1Ty(), width));
}

Value* Emitter::any(Value* m) { return b.CreateOrReduce(m); }

Value* Emitter::named(uint64_t entry_number) {
  Value* at = entry.CreateConstInBoundsGEP1_64(b.getInt64Ty(), table, entry_number);
  return entry.CreateLoad(b.getInt64Ty(), at);
}

Value* Emitter::site_number(loops::SiteId site) {
  return table ? named(2 * names->buffers.size() + names->number(site)) : i64(site.v);
}

Value* Emitter::buffer_number(loops::BufferId id) {
  return table ? named(2 * uint64_t{names->number(id)}) : i64(id.v);
}

Value* Emitter::context_field(size_t bytes) {
  Value* at = entry.CreateConstInBoundsGEP1_64(b.getPtrTy(), context, bytes / sizeof(void*));
  return entry.CreateLoad(b.getPtrTy(), at);
}

Value* Emitter::extent_of(loops::BufferId id, size_t axis) {
  const loops::Buffer& buffer = p.buffers[id];
  if (buffer.known[axis]) return i64(*buffer.known[axis]);
  Value* first = table ? named(2 * uint64_t{names->number(id)} + 1) : i64(first_dim[id.v]);
  Value* at = entry.CreateAdd(first, i64(static_cast<int64_t>(axis)));
  Value* dims = context_field(offsetof(NativeContext, dims));
  return entry.CreateLoad(b.getInt64Ty(), entry.CreateInBoundsGEP(b.getInt64Ty(), dims, at));
}

Emitter::Memory& Emitter::memory_of(loops::BufferId id) {
  // Addresses are loaded once, at the start. With thousands of buffers that would be one long block
  // whose values must all be kept, so the other addresses are loaded where they are used.
  if (auto it = memory.find(id); it != memory.end()) return it->second;
  Value* buffers = context_field(offsetof(NativeContext, buffers));
  const bool kept = memory.size() < static_cast<size_t>(p.tuning.kept_addresses);
  llvm::IRBuilder<>::InsertPointGuard guard(entry);
  if (!kept) entry.SetInsertPoint(b.GetInsertBlock(), b.GetInsertPoint());
  Memory& out = kept ? memory[id] : found_here = {};
  const loops::Buffer& buffer = p.buffers[id];
  out.base = entry.CreateLoad(
      b.getPtrTy(), entry.CreateInBoundsGEP(b.getPtrTy(), buffers, buffer_number(id)), buffer.name);
  out.strides.resize(buffer.dims.size());
  Value* step = i64(1);
  for (size_t k = buffer.dims.size(); k-- > 0;) {
    out.strides[k] = step;
    if (k == 0) break;
    step = entry.CreateMul(step, extent_of(id, k), buffer.name + ".stride", true, true);
  }
  return out;
}

Val Emitter::offset(loops::BufferId id, const std::vector<loops::ExprId>& at) {
  // A copy: emitting the indices may read other buffers and make the table grow.
  std::vector<Value*> strides = memory_of(id).strides;
  Val sum = uniform(i64(0));
  for (size_t k = 0; k < at.size(); ++k) {
    Val i = expr(at[k]);
    Val scaled = i.uniform() ? uniform(b.CreateMul(i.v, strides[k]))
                             : index_op(Op::Mul, i, uniform(strides[k]));
    bool both = sum.uniform() && scaled.uniform();
    sum = both ? uniform(b.CreateAdd(sum.v, scaled.v)) : index_op(Op::Add, sum, scaled);
  }
  return sum;
}

namespace {

bool contiguous(const Val& offset) {
  const auto* step = llvm::dyn_cast_or_null<llvm::ConstantInt>(offset.step);
  return offset.shape == Val::Shape::Linear && step && step->isOne();
}

}  // namespace

Val Emitter::load(const loops::Load& n, DType type) {
  Val at = offset(n.buffer, n.at);
  guard(n.buffer, at);
  if (meets_waiting(n.buffer)) flush_stores();
  Value* base = memory_of(n.buffer).base;
  llvm::Type* element = memory_type_of(type);
  llvm::Align align(size_of(type));
  // A uniform address is valid if any lane is active, and at least one always is.
  if (at.uniform()) {
    Value* where = b.CreateInBoundsGEP(element, base, at.v);
    return uniform(from_memory(touch(b.CreateAlignedLoad(element, where, align), n.buffer), type));
  }
  auto* vector = llvm::FixedVectorType::get(element, width);
  Value* none = llvm::Constant::getNullValue(vector);
  Value* out = nullptr;
  if (contiguous(at)) {
    Value* where = b.CreateInBoundsGEP(element, base, at.v);
    out = mask ? touch(b.CreateMaskedLoad(vector, where, align, mask, none), n.buffer)
               : touch(b.CreateAlignedLoad(vector, where, align), n.buffer);
  } else {
    Value* where = b.CreateInBoundsGEP(element, base, lanes(at, DType::I64));
    out = touch(b.CreateMaskedGather(vector, where, align, full_mask(), none), n.buffer);
  }
  return varying(from_memory(out, type));
}

void Emitter::store(const loops::Store& s) {
  DType type = p.buffers[s.buffer].dtype;
  Val at = offset(s.buffer, s.at);
  guard(s.buffer, at);
  Val v = expr(s.value);
  Value* base = memory_of(s.buffer).base;
  llvm::Type* element = memory_type_of(type);
  llvm::Align align(size_of(type));
  if (width == 1) {
    Value* value = to_memory(v.v, type);
    Value* where = b.CreateInBoundsGEP(element, base, at.v);
    if (path.empty()) {
      touch(b.CreateAlignedStore(value, where, align), s.buffer);
    } else {
      waiting.push_back({s.buffer, value, where, align, path});
    }
    return;
  }
  EIN_CHECK(!at.uniform(), "lanes store to one address");
  Value* wide_v = to_memory(lanes(v, type), type);
  if (!contiguous(at)) {
    Value* where = b.CreateInBoundsGEP(element, base, lanes(at, DType::I64));
    touch(b.CreateMaskedScatter(wide_v, where, align, full_mask()), s.buffer);
    return;
  }
  Value* where = b.CreateInBoundsGEP(element, base, at.v);
  if (mask) {
    touch(b.CreateMaskedStore(wide_v, where, align, mask), s.buffer);
  } else {
    touch(b.CreateAlignedStore(wide_v, where, align), s.buffer);
  }
}

void Emitter::update(const loops::Update& s) {
  flush_stores();
  DType type = p.buffers[s.buffer].dtype;
  Val v = expr(s.value);
  Val at = offset(s.buffer, s.at);
  guard(s.buffer, at);
  Value* base = memory_of(s.buffer).base;
  llvm::Type* element = memory_type_of(type);
  llvm::Align align(size_of(type));
  auto with_value = [&](Value* old, Value* value) {
    return to_memory(apply(Op::Add, {from_memory(old, type), value}, type, type), type);
  };
  if (width == 1) {
    Value* where = b.CreateInBoundsGEP(element, base, at.v);
    Value* old = touch(b.CreateAlignedLoad(element, where, align), s.buffer);
    touch(b.CreateAlignedStore(with_value(old, v.v), where, align), s.buffer);
    return;
  }
  // Lanes run along a coordinate that is not routed, so each adds to a cell of its own.
  EIN_CHECK(!at.uniform(), "lanes add to one address");
  auto* vector = llvm::FixedVectorType::get(element, width);
  Value* none = llvm::Constant::getNullValue(vector);
  Value* value = lanes(v, type);
  bool dense = contiguous(at);
  Value* where = b.CreateInBoundsGEP(element, base, dense ? at.v : lanes(at, DType::I64));
  if (!dense) {
    Value* old = touch(b.CreateMaskedGather(vector, where, align, full_mask(), none), s.buffer);
    touch(b.CreateMaskedScatter(with_value(old, value), where, align, full_mask()), s.buffer);
  } else if (mask) {
    Value* old = touch(b.CreateMaskedLoad(vector, where, align, mask, none), s.buffer);
    touch(b.CreateMaskedStore(with_value(old, value), where, align, mask), s.buffer);
  } else {
    Value* old = touch(b.CreateAlignedLoad(vector, where, align), s.buffer);
    touch(b.CreateAlignedStore(with_value(old, value), where, align), s.buffer);
  }
}

}  // namespace ein::codegen
