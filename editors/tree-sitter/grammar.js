// The grammar of Einlang for tree-sitter: Helix, newer Neovim and Emacs. src/parser.c is generated from it (`make tree-sitter`).
// It takes what the compiler takes and a little more; `[e | i in 0..n]` is an array whose first item has a `|` in it. What
// depends on line breaks is decided in src/scanner.c: where a statement ends without `;`, and that `(` and `[` go on with an
// expression only on its own line.
const PREC = { where: 0, lambda: 1, or: 2, and: 3, compare: 4, range: 5, bit_or: 6, bit_xor: 7, bit_and: 8, shift: 9, add: 10, multiply: 11,
  unary: 12, power: 13, cast: 14, request: 15, postfix: 16 };
const BINARY = [[PREC.or, "||"], [PREC.and, "&&"], [PREC.compare, choice("<", "<=", ">", ">=", "==", "!=", "in")], [PREC.range, choice("..", "..=")],
  [PREC.bit_or, "|"], [PREC.bit_xor, "^"], [PREC.bit_and, "&"], [PREC.shift, choice("<<", ">>")], [PREC.add, choice("+", "-")],
  [PREC.multiply, choice("*", "/", "%")]];

const list1 = (item) => seq(item, repeat(seq(",", item)), optional(","));
const list = (item) => optional(list1(item));

module.exports = grammar({
  name: "ein",
  externals: ($) => [$._end, $._open_call, $._open_index, $._never],
  extras: ($) => [/[ \t\r\n]/, $.comment],
  word: ($) => $._word,
  supertypes: ($) => [$.expression, $.type],
  conflicts: ($) => [[$.module, $.identifier], [$.type_definition, $.identifier]],

  rules: {
    source_file: ($) => seq(optional($.hash_bang), repeat($._statement)),
    hash_bang: () => token(/#![^\[\n][^\n]*/),
    comment: () => token(seq("//", /[^\n]*/)),

    // ---- statements

    _statement: ($) => choice(";", seq(repeat($.attribute), choice(
      $.let, $.const, $.function, $.use, $.module, $.type_definition, $.test, $.expression_statement))),
    _ends: ($) => choice(";", $._end),
    attribute: ($) => seq("#", "[", field("name", $.identifier), optional(seq(choice($._open_call, "("), list($._item), ")")), "]"),

    let: ($) => prec.right(seq("let", field("name", choice($.identifier, $.names)), optional($.slots), optional(seq(":", field("type", $.type))),
      choice($._ends, seq("=", choice(
        seq(field("value", $._value), optional(seq("until", field("until", $.expression))), $._ends),
        prec(-1, field("value", $._block_like))))))),
    names: ($) => choice(seq("(", list($.identifier), ")"), seq("{", list($.identifier), "}")),
    slots: ($) => seq(choice("[", $._open_index), list(choice($._item, $.pack)), "]"),
    const: ($) => seq(optional("pub"), "const", field("name", $.identifier), optional(seq(":", field("type", $.type))), "=",
      choice(seq(field("value", $._value), $._ends), prec(-1, field("value", $._block_like)))),
    function: ($) => seq(optional("pub"), optional("@"), "fn", field("name", $.identifier),
      optional(seq(choice("[", $._open_index), list(choice($.identifier, $.pack)), "]")),
      field("parameters", $.parameters), optional(seq("->", field("result", $.type))), field("body", $._body)),
    parameters: ($) => seq(choice("(", $._open_call), list($.parameter), ")"),
    parameter: ($) => seq(field("name", $.identifier), optional(seq(":", field("type", $.type))), optional(seq("=", field("value", $._item)))),
    use: ($) => seq(optional("pub"), "use", $.identifier, repeat(seq("::", $.identifier)),
      optional(choice(seq("::", "*"), seq("::", "{", list($.use_item), "}"))), optional(seq("as", field("alias", $.identifier))), $._ends),
    use_item: ($) => seq(field("name", $.identifier), optional(seq("as", field("alias", $.identifier)))),
    module: ($) => seq("mod", field("name", $.identifier), $._ends),
    type_definition: ($) => seq(optional("pub"), "type", field("name", $.identifier), "=", field("type", $.type), $._ends),
    test: ($) => seq("test", field("name", $.string), field("body", $._body)),
    expression_statement: ($) => choice(seq($._value, $._ends), prec(-1, $._block_like)),

    // ---- expressions: a statement's value may have several conditions, an item of a list has one

    _value: ($) => choice($.expression, alias($.conditions, $.where)),
    _item: ($) => choice($.expression, $.where),
    conditions: ($) => prec.right(PREC.where, seq($._value, "where", $.condition, repeat(seq(",", $.condition)), optional(seq("else", $.expression)))),
    where: ($) => prec.right(PREC.where, seq($._item, "where", $.condition, optional(seq("else", $.expression)))),
    condition: ($) => choice($.expression, seq(field("name", $.identifier), "=", $.expression)),

    expression: ($) => choice($._operand, $.record, $.binary, $.unary, $.cast, $.request, $.lambda, $._block_like),
    _operand: ($) => choice($.identifier, $.path, $.number, $.string, $.boolean, $.parentheses, $.array, $.call, $.index, $.field),
    _block_like: ($) => choice($.block, $.if, $.match),

    path: ($) => seq($.identifier, repeat1(seq("::", $.identifier))),
    boolean: () => choice("true", "false"),
    parentheses: ($) => seq(choice("(", $._open_call), list($._item), ")"),
    array: ($) => seq(choice("[", $._open_index), list($._item), "]"),
    binary: ($) => choice(
      ...BINARY.map(([level, operator]) => prec.left(level, seq($.expression, field("operator", operator), $.expression))),
      prec.right(PREC.power, seq($.expression, field("operator", "**"), $.expression))),
    unary: ($) => prec(PREC.unary, seq(field("operator", choice("-", "+", "!", "~")), $.expression)),
    cast: ($) => prec.left(PREC.cast, seq($.expression, "as", $.type)),
    call: ($) => prec(PREC.postfix, seq(field("function", $._operand), $._open_call, list(choice($._item, $.argument, $.pack)), ")")),
    argument: ($) => seq(field("name", $.identifier), "=", $._item),
    index: ($) => prec(PREC.postfix, seq(field("value", $._operand), $._open_index, list(choice($._item, $.pack)), "]")),
    field: ($) => prec(PREC.postfix, seq(field("value", $._operand), ".", field("name", choice($.identifier, alias($.place, $.number))))),
    place: () => /[0-9]+/,
    pack: ($) => seq("..", $.identifier),
    request: ($) => prec.right(PREC.request, seq("@", field("of", $._operand), optional(seq(alias($._by, "/ @"), field("by", $._operand))))),
    _by: () => token(/\/[ \t\r\n]*@/),
    lambda: ($) => prec.right(PREC.lambda, seq(choice(seq("|", list($.lambda_parameter), "|"), "||"), field("body", $._item))),
    lambda_parameter: ($) => seq(field("name", $.identifier), optional(seq(":", field("type", $.type)))),
    if: ($) => prec.right(seq("if", field("condition", $._value), field("then", $._body), optional(seq("else", field("else", choice($.if, $._body)))))),
    match: ($) => seq("match", field("subject", $._value), "{", repeat($.arm), "}"),
    arm: ($) => seq(field("pattern", $._pattern), optional(seq("if", field("guard", $._item))), "=>",
      choice(seq(field("value", $._item), choice(",", $._end)), prec(-1, field("value", $._block_like)))),
    block: ($) => seq("{", repeat($._statement), "}"),
    record: ($) => seq("{", choice(
      seq("..", $._item, repeat(seq(",", $.record_field)), optional(",")),
      seq(alias($.first_field, $.record_field), repeat(seq(",", $.record_field)), optional(",")),
      seq(alias($.identifier, $.record_field), ",", list($.record_field))), "}"),
    first_field: ($) => seq(field("name", $.identifier), ":", $._item),
    record_field: ($) => seq(field("name", $.identifier), optional(seq(":", $._item))),
    _body: ($) => choice($.block, $.record),

    _pattern: ($) => choice($._choice, $.alternatives, seq(field("name", $.identifier), "@", $._pattern)),
    alternatives: ($) => seq($._choice, repeat1(seq("|", $._choice))),
    _choice: ($) => choice($._signed, $.string, $.boolean, $.identifier, $.path, alias($.pattern_range, $.binary), $.tuple_pattern),
    _signed: ($) => seq(optional("-"), $.number),
    pattern_range: ($) => seq($._signed, field("operator", choice("..", "..=")), $._signed),
    tuple_pattern: ($) => seq("(", list($._pattern), ")"),

    // ---- types

    type: ($) => choice($.identifier, $.tensor_type, $.tuple_type, $.record_type, $.function_type),
    tensor_type: ($) => seq(choice("[", $._open_index), field("element", $.type), ";", list($._extent), "]"),
    _extent: ($) => choice($._item, $.pack, "?", "*"),
    tuple_type: ($) => seq(choice("(", $._open_call), list($.type), ")"),
    record_type: ($) => seq("{", list1($.field_type), "}"),
    field_type: ($) => seq(optional(seq($.string, "as")), field("name", $.identifier), ":", field("type", $.type)),
    function_type: ($) => prec.right(seq("fn", choice("(", $._open_call), list($.type), ")", "->", $.type)),

    // ---- tokens. Words that are keywords in one place only are names everywhere else.

    identifier: ($) => choice($._word, "in", "mod", "test", "type", "until"),
    _word: () => /[A-Za-z_\u00AA\u00B5\u00BA\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u024F\u0370-\u0373\u0376\u0377\u037F\u0386\u0388-\u03FF\u0400-\u052F\u05D0-\u05EA\u0620-\u064A\u0904-\u0939\u1E00-\u1FBC\u2100-\u2138\u3041-\u3096\u30A1-\u30FA\u3400-\u9FFF\uAC00-\uD7A3][A-Za-z_0-9\u00AA\u00B5\u00BA\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u024F\u0300-\u036F\u0370-\u0373\u0376\u0377\u037F\u0386\u0388-\u03FF\u0400-\u052F\u05D0-\u05EA\u0620-\u064A\u0904-\u0939\u1E00-\u1FBC\u2080-\u209C\u2100-\u2138\u3041-\u3096\u30A1-\u30FA\u3400-\u9FFF\uAC00-\uD7A3]*/,
    number: () => token(choice(/0x[0-9A-Fa-f_]+/, /0b[01_]+/, /[0-9][0-9_]*(\.[0-9][0-9_]*)?([eE][+-]?[0-9][0-9_]*)?/)),
    string: ($) => seq('"', repeat(choice($.text, $.escape, $.placeholder)), token.immediate('"')),
    text: () => token.immediate(prec(2, /[^"\\{}\n]+/)),
    escape: () => token.immediate(prec(2, choice(/\\u\{[0-9A-Fa-f]+\}/, /\\[^\n]/, "{{", "}}"))),
    placeholder: ($) => seq(token.immediate("{"), $._value, optional($.format), "}"),
    format: () => /:[^:{}"\n]*/,
  },
});
