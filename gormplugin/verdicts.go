package gormplugin

import (
	"hash/maphash"
	"strings"
	"sync/atomic"

	"github.com/shardid/shardid/sharding"
)

// verdicts remembers texts of routed statements that the guard let pass: an
// application sends few different ones, as values are parameters. Each text has
// one place, from which a newer one drives it away. It is safe for concurrent
// use; a lost entry only means another scan.
type verdicts struct {
	seed   maphash.Seed
	places [512]atomic.Pointer[verdict]
}

// verdict is a text that passed.
type verdict struct {
	text   string
	table  string // the logical name of the statement's table
	joined bool
}

// maxRemembered keeps batches, whose texts are long and differ, out.
const maxRemembered = 2048

func (v *verdicts) place(text string) *atomic.Pointer[verdict] {
	return &v.places[maphash.String(v.seed, text)%uint64(len(v.places))]
}

func (v *verdicts) passed(text string, table *sharding.Table, joined bool) bool {
	if len(text) > maxRemembered {
		return false
	}
	known := v.place(text).Load()
	return known != nil && known.text == text && known.table == table.Name && known.joined == joined
}

func (v *verdicts) pass(text string, table *sharding.Table, joined bool) {
	if len(text) <= maxRemembered {
		v.place(text).Store(&verdict{text, table.Name, joined})
	}
}

// squeezed returns the text of a batch with three of its rows of parameters,
// ",(?,?,?)" and the like, when there are more of the same in a row. The rest
// cannot change a verdict: it has no word, ends no literal and no comment, and
// closes the parentheses that it opens.
func squeezed(text string) string {
	begin := strings.Index(text, "),(") + 1
	if begin == 0 {
		return text
	}
	length := strings.IndexByte(text[begin:], ')') + 1
	if length == 0 {
		return text
	}
	row := text[begin : begin+length]
	if strings.Trim(row[2:], "?, )") != "" {
		return text
	}
	end := begin
	for strings.HasPrefix(text[end:], row) {
		end += length
	}
	if end-begin <= 3*length {
		return text
	}
	return text[:begin+3*length] + text[end:]
}
