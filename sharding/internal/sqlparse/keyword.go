package sqlparse

// keyword is a word that the grammar knows; 0 is any other word.
type keyword uint8

// The words that the parser asks for. Others are compared by their text.
const (
	_ keyword = iota
	kwAgainst
	kwAll
	kwAnd
	kwArray
	kwAs
	kwAsc
	kwAt
	kwBetween
	kwBinary
	kwBy
	kwCase
	kwCast
	kwCollate
	kwConflict
	kwConvert
	kwCross
	kwCurrent // CURRENT_TIMESTAMP and its like
	kwDefault
	kwDelete
	kwDesc
	kwDistinct
	kwDiv
	kwDo
	kwElse
	kwEnd
	kwEscape
	kwExcept
	kwExists
	kwFalse
	kwFetch
	kwFilter
	kwFor
	kwForce
	kwFrom
	kwFull
	kwGlob
	kwGroup
	kwGrouping
	kwHaving
	kwIgnore
	kwIlike
	kwIn
	kwIndexed
	kwInner
	kwInsert
	kwIntersect
	kwInterval
	kwInto
	kwIs
	kwIsNull
	kwJoin
	kwLateral
	kwLeft
	kwLike
	kwLimit
	kwLock
	kwMatch
	kwMember
	kwMinus
	kwMod
	kwNatural
	kwNot
	kwNotNull
	kwNull
	kwNulls
	kwOffset
	kwOn
	kwOnly
	kwOperator
	kwOr
	kwOrder
	kwOuter
	kwOver
	kwOverlaps
	kwOverriding
	kwPartition
	kwProcedure
	kwRegexp
	kwReplace
	kwReturning
	kwRight
	kwRlike
	kwRow
	kwRows
	kwSelect
	kwSeparator
	kwSet
	kwSimilar
	kwSounds
	kwStraightJoin
	kwTable
	kwTableSample
	kwThen
	kwTrue
	kwUnion
	kwUpdate
	kwUse
	kwUsing
	kwValue
	kwValues
	kwWhen
	kwWhere
	kwWindow
	kwWith
	kwWithin
	kwXor
	keywords
)

// class says where a word has its special meaning, in one of the dialects at
// least: where they differ, a statement that uses the word as a name is Unknown
// rather than misread.
type class uint8

const (
	reserved class = 1 << iota // no name, unless it is quoted or stands behind a dot
	callable                   // although reserved, a function before a parenthesis
	bound                      // no alias without AS
	infix                      // goes on with the expression that stands before it
	constant                   // a value
)

// words are the texts of the keywords with their classes.
var words = [keywords]struct {
	text  string
	class class
}{
	kwAgainst: {"against", bound}, kwAll: {"all", reserved | callable}, kwAnd: {"and", reserved}, kwArray: {"array", 0},
	kwAs: {"as", reserved}, kwAsc: {"asc", reserved}, kwAt: {"at", bound | infix},
	kwBetween: {"between", reserved | infix}, kwBinary: {"binary", 0}, kwBy: {"by", reserved},
	kwCase: {"case", reserved}, kwCast: {"cast", 0}, kwCollate: {"collate", reserved | infix},
	kwConflict: {"conflict", 0}, kwConvert: {"convert", 0}, kwCross: {"cross", reserved}, kwCurrent: {"current_timestamp", constant},
	kwDefault: {"default", reserved | callable | constant}, kwDelete: {"delete", reserved}, kwDesc: {"desc", reserved},
	kwDistinct: {"distinct", reserved}, kwDiv: {"div", bound | infix}, kwDo: {"do", bound},
	kwElse: {"else", reserved}, kwEnd: {"end", bound}, kwEscape: {"escape", bound | infix}, kwExcept: {"except", reserved},
	kwExists: {"exists", reserved}, kwFalse: {"false", reserved | constant}, kwFetch: {"fetch", bound}, kwFilter: {"filter", 0},
	kwFor: {"for", reserved}, kwForce: {"force", bound}, kwFrom: {"from", reserved}, kwFull: {"full", bound},
	kwGlob: {"glob", bound | infix}, kwGroup: {"group", reserved}, kwGrouping: {"grouping", 0}, kwHaving: {"having", reserved},
	kwIgnore: {"ignore", bound}, kwIlike: {"ilike", bound | infix}, kwIn: {"in", reserved | infix}, kwIndexed: {"indexed", bound},
	kwInner: {"inner", reserved}, kwInsert: {"insert", reserved | callable}, kwIntersect: {"intersect", reserved},
	kwInterval: {"interval", 0}, kwInto: {"into", reserved}, kwIs: {"is", reserved | infix}, kwIsNull: {"isnull", bound | infix},
	kwJoin: {"join", reserved}, kwLateral: {"lateral", bound}, kwLeft: {"left", reserved | callable},
	kwLike: {"like", reserved | infix | callable}, kwLimit: {"limit", reserved}, kwLock: {"lock", bound},
	kwMatch: {"match", bound | infix}, kwMember: {"member", bound | infix}, kwMinus: {"minus", bound},
	kwMod: {"mod", bound | infix}, kwNatural: {"natural", reserved}, kwNot: {"not", reserved | infix}, kwNotNull: {"notnull", bound | infix},
	kwNull: {"null", reserved | constant}, kwNulls: {"nulls", bound}, kwOffset: {"offset", bound}, kwOn: {"on", reserved},
	kwOnly: {"only", 0}, kwOperator: {"operator", bound | infix}, kwOr: {"or", reserved}, kwOrder: {"order", reserved},
	kwOuter: {"outer", bound}, kwOver: {"over", 0}, kwOverlaps: {"overlaps", bound | infix}, kwOverriding: {"overriding", bound},
	kwPartition: {"partition", bound}, kwProcedure: {"procedure", bound}, kwRegexp: {"regexp", bound | infix},
	kwReplace: {"replace", reserved | callable}, kwReturning: {"returning", bound}, kwRight: {"right", reserved | callable},
	kwRlike: {"rlike", bound | infix}, kwRow: {"row", 0}, kwRows: {"rows", bound}, kwSelect: {"select", reserved},
	kwSeparator: {"separator", bound}, kwSet: {"set", reserved}, kwSimilar: {"similar", bound | infix},
	kwSounds: {"sounds", bound | infix}, kwStraightJoin: {"straight_join", reserved}, kwTable: {"table", reserved},
	kwTableSample: {"tablesample", bound}, kwThen: {"then", reserved}, kwTrue: {"true", reserved | constant},
	kwUnion: {"union", reserved}, kwUpdate: {"update", reserved}, kwUse: {"use", bound}, kwUsing: {"using", reserved},
	kwValue: {"value", 0}, kwValues: {"values", reserved | callable}, kwWhen: {"when", reserved}, kwWhere: {"where", reserved},
	kwWindow: {"window", bound}, kwWith: {"with", reserved}, kwWithin: {"within", 0}, kwXor: {"xor", bound},
}

var (
	byText  = map[string]keyword{}
	longest int
)

func init() { //nolint:gochecknoinits // one map made of another table, before anybody can read it
	for k := kwAgainst; k < keywords; k++ {
		byText[words[k].text] = k
	}
	for _, w := range []string{
		"current_date", "current_time", "current_user", "current_role", "current_catalog", "current_schema",
		"localtime", "localtimestamp", "session_user", "system_user", "utc_date", "utc_time", "utc_timestamp",
	} {
		byText[w] = kwCurrent
	}
	for w := range byText {
		longest = max(longest, len(w))
	}
}

// keywordOf returns the keyword that a word is, in any case.
func keywordOf(word string) keyword {
	var lower [24]byte
	if len(word) < 2 || len(word) > longest || longest > len(lower) {
		return 0
	}
	for i := range len(word) {
		c := word[i]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		lower[i] = c
	}
	return byText[string(lower[:len(word)])]
}

func (k keyword) is(c class) bool { return words[k].class&c != 0 }
