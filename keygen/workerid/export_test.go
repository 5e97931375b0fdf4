package workerid

// OrdinalOf is what Ordinal does with a machine's name.
var OrdinalOf = ordinal
