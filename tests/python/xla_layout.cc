// Compares the structures that the package declares for XLA's C interface with those of jaxlib's header. Compiling
// it is the test; it prints the version for which that holds.
#include <cstdio>

#include "xla.h"
#include "xla/ffi/api/c_api.h"

namespace own = einlang::xla;

#define SAME_SIZE(ours, theirs) static_assert(sizeof(own::ours) == sizeof(theirs), #theirs)
#define SAME_PLACE(ours, field, theirs, other)                                              \
  static_assert(offsetof(own::ours, field) == offsetof(theirs, other), #theirs "." #other); \
  static_assert(sizeof(own::ours::field) == sizeof(theirs::other), #theirs "." #other)

SAME_SIZE(Extension, XLA_FFI_Extension_Base);
SAME_PLACE(Extension, size, XLA_FFI_Extension_Base, struct_size);
SAME_PLACE(Extension, type, XLA_FFI_Extension_Base, type);
SAME_PLACE(Extension, next, XLA_FFI_Extension_Base, next);
SAME_SIZE(Version, XLA_FFI_Api_Version);
SAME_PLACE(Version, size, XLA_FFI_Api_Version, struct_size);
SAME_PLACE(Version, extensions, XLA_FFI_Api_Version, extension_start);
SAME_PLACE(Version, major, XLA_FFI_Api_Version, major_version);
SAME_PLACE(Version, minor, XLA_FFI_Api_Version, minor_version);
SAME_SIZE(Metadata, XLA_FFI_Metadata);
SAME_PLACE(Metadata, size, XLA_FFI_Metadata, struct_size);
SAME_PLACE(Metadata, version, XLA_FFI_Metadata, api_version);
SAME_PLACE(Metadata, traits, XLA_FFI_Metadata, traits);
SAME_PLACE(Metadata, state_type, XLA_FFI_Metadata, state_type_id);
SAME_SIZE(MetadataExtension, XLA_FFI_Metadata_Extension);
SAME_PLACE(MetadataExtension, base, XLA_FFI_Metadata_Extension, extension_base);
SAME_PLACE(MetadataExtension, metadata, XLA_FFI_Metadata_Extension, metadata);
SAME_SIZE(ErrorArguments, XLA_FFI_Error_Create_Args);
SAME_PLACE(ErrorArguments, size, XLA_FFI_Error_Create_Args, struct_size);
SAME_PLACE(ErrorArguments, extensions, XLA_FFI_Error_Create_Args, extension_start);
SAME_PLACE(ErrorArguments, message, XLA_FFI_Error_Create_Args, message);
SAME_PLACE(ErrorArguments, code, XLA_FFI_Error_Create_Args, errc);
SAME_PLACE(Api, size, XLA_FFI_Api, struct_size);  // Api is the beginning alone, so sizes differ
SAME_PLACE(Api, extensions, XLA_FFI_Api, extension_start);
SAME_PLACE(Api, version, XLA_FFI_Api, api_version);
SAME_PLACE(Api, internal, XLA_FFI_Api, internal_api);
static_assert(offsetof(own::Api, make_error) == offsetof(XLA_FFI_Api, XLA_FFI_Error_Create));
SAME_SIZE(Buffer, XLA_FFI_Buffer);
SAME_PLACE(Buffer, size, XLA_FFI_Buffer, struct_size);
SAME_PLACE(Buffer, extensions, XLA_FFI_Buffer, extension_start);
SAME_PLACE(Buffer, dtype, XLA_FFI_Buffer, dtype);
SAME_PLACE(Buffer, data, XLA_FFI_Buffer, data);
SAME_PLACE(Buffer, rank, XLA_FFI_Buffer, rank);
SAME_PLACE(Buffer, dims, XLA_FFI_Buffer, dims);
SAME_SIZE(Bytes, XLA_FFI_ByteSpan);
SAME_PLACE(Bytes, data, XLA_FFI_ByteSpan, ptr);
SAME_PLACE(Bytes, length, XLA_FFI_ByteSpan, len);
SAME_SIZE(Scalar, XLA_FFI_Scalar);
SAME_PLACE(Scalar, dtype, XLA_FFI_Scalar, dtype);
SAME_PLACE(Scalar, value, XLA_FFI_Scalar, value);
SAME_SIZE(Array, XLA_FFI_Array);
SAME_PLACE(Array, dtype, XLA_FFI_Array, dtype);
SAME_PLACE(Array, length, XLA_FFI_Array, size);
SAME_PLACE(Array, data, XLA_FFI_Array, data);
SAME_SIZE(Values, XLA_FFI_Args);
SAME_PLACE(Values, size, XLA_FFI_Args, struct_size);
SAME_PLACE(Values, extensions, XLA_FFI_Args, extension_start);
SAME_PLACE(Values, count, XLA_FFI_Args, size);
SAME_PLACE(Values, types, XLA_FFI_Args, types);
SAME_PLACE(Values, values, XLA_FFI_Args, args);
SAME_SIZE(Values, XLA_FFI_Rets);
SAME_PLACE(Values, count, XLA_FFI_Rets, size);
SAME_PLACE(Values, types, XLA_FFI_Rets, types);
SAME_PLACE(Values, values, XLA_FFI_Rets, rets);
SAME_SIZE(Attributes, XLA_FFI_Attrs);
SAME_PLACE(Attributes, size, XLA_FFI_Attrs, struct_size);
SAME_PLACE(Attributes, extensions, XLA_FFI_Attrs, extension_start);
SAME_PLACE(Attributes, count, XLA_FFI_Attrs, size);
SAME_PLACE(Attributes, types, XLA_FFI_Attrs, types);
SAME_PLACE(Attributes, names, XLA_FFI_Attrs, names);
SAME_PLACE(Attributes, values, XLA_FFI_Attrs, attrs);
SAME_SIZE(CallFrame, XLA_FFI_CallFrame);
SAME_PLACE(CallFrame, size, XLA_FFI_CallFrame, struct_size);
SAME_PLACE(CallFrame, extensions, XLA_FFI_CallFrame, extension_start);
SAME_PLACE(CallFrame, api, XLA_FFI_CallFrame, api);
SAME_PLACE(CallFrame, context, XLA_FFI_CallFrame, ctx);
SAME_PLACE(CallFrame, stage, XLA_FFI_CallFrame, stage);
SAME_PLACE(CallFrame, arguments, XLA_FFI_CallFrame, args);
SAME_PLACE(CallFrame, results, XLA_FFI_CallFrame, rets);
SAME_PLACE(CallFrame, attributes, XLA_FFI_CallFrame, attrs);
SAME_PLACE(CallFrame, future, XLA_FFI_CallFrame, future);

#define SAME_NUMBER(ours, theirs) static_assert(int{own::ours} == int{theirs}, #theirs)
SAME_NUMBER(kMetadata, XLA_FFI_Extension_Metadata);
SAME_NUMBER(kInvalidArgument, XLA_FFI_Error_Code_INVALID_ARGUMENT);
SAME_NUMBER(kFailedPrecondition, XLA_FFI_Error_Code_FAILED_PRECONDITION);
SAME_NUMBER(kAborted, XLA_FFI_Error_Code_ABORTED);
SAME_NUMBER(kInternal, XLA_FFI_Error_Code_INTERNAL);
SAME_NUMBER(kPred, XLA_FFI_DataType_PRED);
SAME_NUMBER(kS8, XLA_FFI_DataType_S8);
SAME_NUMBER(kS16, XLA_FFI_DataType_S16);
SAME_NUMBER(kS32, XLA_FFI_DataType_S32);
SAME_NUMBER(kS64, XLA_FFI_DataType_S64);
SAME_NUMBER(kU8, XLA_FFI_DataType_U8);
SAME_NUMBER(kF16, XLA_FFI_DataType_F16);
SAME_NUMBER(kF32, XLA_FFI_DataType_F32);
SAME_NUMBER(kF64, XLA_FFI_DataType_F64);
SAME_NUMBER(kBf16, XLA_FFI_DataType_BF16);
SAME_NUMBER(kArray, XLA_FFI_AttrType_ARRAY);
SAME_NUMBER(kScalar, XLA_FFI_AttrType_SCALAR);
SAME_NUMBER(kBuffer, XLA_FFI_ArgType_BUFFER);
SAME_NUMBER(kBuffer, XLA_FFI_RetType_BUFFER);
SAME_NUMBER(kExecute, XLA_FFI_ExecutionStage_EXECUTE);
static_assert(own::kMajor == XLA_FFI_API_MAJOR && own::kMinor <= XLA_FFI_API_MINOR);

int main() { std::printf("%d.%d\n", XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR); }
