" Syntax of Einlang. The lists of words are written by tools/editor_words.py.
if exists("b:current_syntax")
  finish
endif

syn keyword einKeyword let const fn pub use if else match where as true false
syn keyword einSoft in mod test type until
syn keyword einType bool i8 i16 i32 i64 u8 f16 bf16 f32 f64 str
syn keyword einBuiltin abs acos all any argmax argmin asin assert atan atan2 bit_length ceil coordinate cos cosh dbg each eprint erf exp expm1 extent floor fold given join last len load log log1p matrix_cells matrix_factor max mean min names normal part print prod ran reshape round save shape sign sin sinh sqrt stop sum tan tanh typeof uniform

syn match einNumber "\<\d[0-9_]*\%(\.\d[0-9_]*\)\?\%([eE][+-]\?\d[0-9_]*\)\?\>"
syn match einNumber "\<0\%(x[0-9A-Fa-f_]\+\|b[01_]\+\)\>"
" The parts of a tuple: `t.0.1` has two numbers.
syn match einNumber "\%([A-Za-z0-9_)\]]\.\)\@2<=\d\+"
syn match einFunction "\%(\<fn\s\+\)\@<=\h\w*"
syn match einRequest "@"
syn match einAttribute "#\[[^]]*\]" contains=einNumber,einString
syn region einString start=+"+ skip=+\\.+ end=+"+ end=+$+ contains=einEscape,einPlaceholder
syn region einPlaceholder matchgroup=Special start="{" end="}" contained contains=TOP
" After the region: of two items that begin at one place, the later one counts, and `{{` is no placeholder.
syn match einEscape "\\u{\x*}\|\\.\|{{\|}}" contained
syn match einComment "//.*$" contains=@Spell
syn match einDoc "///.*$" contains=@Spell

hi def link einKeyword Keyword
hi def link einSoft Keyword
hi def link einType Type
hi def link einBuiltin Function
hi def link einNumber Number
hi def link einFunction Function
hi def link einRequest Special
hi def link einAttribute PreProc
hi def link einString String
hi def link einEscape SpecialChar
hi def link einComment Comment
hi def link einDoc SpecialComment

let b:current_syntax = "ein"
