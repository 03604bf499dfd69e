; Later patterns win. The lists of words are written by tools/editor_words.py.

(identifier) @variable
(comment) @comment
(hash_bang) @comment
(number) @number
(boolean) @constant.builtin
(string) @string
(escape) @string.escape
(format) @string.special
(placeholder ["{" "}"] @punctuation.special)

["let" "const" "fn" "pub" "use" "if" "else" "match" "where" "as"] @keyword
["in" "mod" "test" "type" "until"] @keyword
["true" "false"] @constant.builtin

["+" "-" "*" "/" "%" "**" "=" "==" "!=" "<" "<=" ">" ">=" "&&" "||" "!" "~" "|" "&" "^" "<<" ">>" ".." "..=" "->" "=>" "?"] @operator
["@" "/ @"] @keyword.operator
["," ";" ":" "::" "."] @punctuation.delimiter
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
(attribute ["#" "[" "]"] @attribute)
(attribute name: (identifier) @attribute)

; What stands in brackets of values are indices; those of a definition are where they come from.
(index value: (_) (identifier) @variable.parameter)
(slots (identifier) @variable.parameter)
(slots (binary . (identifier) @variable.parameter))
(pack (identifier) @variable.parameter)
(tensor_type (identifier) @type.parameter)

(field name: (identifier) @property)
(record_field name: (identifier) @property)
(field_type name: (identifier) @property)
(argument name: (identifier) @property)
(parameter name: (identifier) @variable.parameter)
(lambda_parameter name: (identifier) @variable.parameter)
(path (identifier) @namespace)
(path (identifier) @variable .)
(use (identifier) @namespace)
(module name: (identifier) @namespace)

(tensor_type element: (identifier) @type)
(let type: (identifier) @type)
(cast (identifier) @type .)
(type_definition name: (identifier) @type)
((identifier) @type.builtin
  (#any-of? @type.builtin "bool" "i8" "i16" "i32" "i64" "u8" "f16" "bf16" "f32" "f64" "str"))

(function name: (identifier) @function)
(call function: (identifier) @function)
(call function: (path (identifier) @function .))
(call function: (index value: (identifier) @function))
((call function: [(identifier) @function.builtin (index value: (identifier) @function.builtin)])
  (#any-of? @function.builtin "abs" "acos" "all" "any" "argmax" "argmin" "asin" "assert" "atan" "atan2" "bit_length" "ceil" "coordinate" "cos" "cosh" "dbg" "each" "eprint" "erf" "exp" "expm1" "extent" "floor" "fold" "given" "join" "last" "len" "load" "log" "log1p" "matrix_cells" "matrix_factor" "max" "mean" "min" "names" "normal" "part" "print" "prod" "ran" "reshape" "round" "save" "shape" "sign" "sin" "sinh" "sqrt" "stop" "sum" "tan" "tanh" "typeof" "uniform"))
