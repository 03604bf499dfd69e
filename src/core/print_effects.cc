#include "core/print_effects.h"

#include <fmt/format.h>

#include <algorithm>

namespace ein::core {

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (char c : s) {
    switch (c) {
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '{': out += "{{"; break;
      case '}': out += "}}"; break;
      default: out += c;
    }
  }
  return out + "\"";
}

namespace {

std::string save_text(const Module& m, const Effect& e) {
  std::vector<std::string> args{quoted(e.path)};
  for (const Piece& p : e.pieces) args.push_back(text(m[p.value].name));
  return fmt::format("save({});\n", fmt::join(args, ", "));
}

// The index for one coordinate of a `join`: named like it, unless an index around has that name.
std::string index_name(const Coord& c, const std::vector<std::string>& taken) {
  std::string name = text(c.name);
  for (size_t n = taken.size();
       name.empty() || std::find(taken.begin(), taken.end(), name) != taken.end(); ++n) {
    name = fmt::format("i{}", n);
  }
  return name;
}

// The text of a line as a string literal, joins as calls in placeholders.
std::string line_text(const Module& m, const Effect& e) {
  std::string line = "\"";
  std::vector<std::string> indices;
  std::vector<const Piece*> open;
  auto read = [&](const Piece& p) {
    std::string at = indices.empty() ? "" : fmt::format("[{}]", fmt::join(indices, ", "));
    return text(m[p.value].name) + at;
  };
  for (const Piece& p : e.pieces) {
    std::string piece = quoted(p.text);
    line += piece.substr(1, piece.size() - 2);
    if (p.join == Piece::Join::Open) {
      size_t first = indices.size();
      for (uint32_t k = 0; k < p.rank; ++k) {
        indices.push_back(index_name(m[p.value].coords[indices.size()], indices));
      }
      std::vector<std::string> own(indices.begin() + static_cast<ptrdiff_t>(first), indices.end());
      line += p.rank == 0 ? "{\"" : fmt::format("{{join[{}](\"", fmt::join(own, ", "));
      open.push_back(&p);
    } else if (p.join == Piece::Join::Close) {
      const Piece& from = *open.back();
      line += fmt::format("\" where {}{}", read(from), from.rank == 0 ? "}" : ")}");
      indices.resize(indices.size() - from.rank);
      open.pop_back();
    } else if (p.value) {
      line += "{" + read(p) + (p.format.empty() ? "" : ":" + p.format) + "}";
    }
  }
  return line + "\"";
}

}  // namespace

std::string effect_text(const Module& m, const Effect& e) {
  if (e.kind == Effect::Kind::Save) return save_text(m, e);
  std::string line = line_text(m, e);
  if (e.kind == Effect::Kind::Print) {
    std::string end = e.end == "\n" ? "" : ", end = " + quoted(e.end);
    return fmt::format("{}({}{});\n", e.error ? "eprint" : "print", line, end);
  }
  if (e.kind == Effect::Kind::Write) return fmt::format("save({}, {});\n", quoted(e.path), line);
  return fmt::format("assert({}, {});\n", text(m[e.cond].name), line);
}

}  // namespace ein::core
