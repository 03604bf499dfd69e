(function) @local.scope
(block) @local.scope
(lambda) @local.scope
(arm) @local.scope
(test) @local.scope

(let name: (identifier) @local.definition)
(let name: (names (identifier) @local.definition))
(const name: (identifier) @local.definition)
(function name: (identifier) @local.definition)
(parameter name: (identifier) @local.definition)
(lambda_parameter name: (identifier) @local.definition)
(slots (identifier) @local.definition)
(condition name: (identifier) @local.definition)
(use_item alias: (identifier) @local.definition)

(identifier) @local.reference
