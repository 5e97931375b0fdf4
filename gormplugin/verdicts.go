package gormplugin

import "strings"

// verdict is what a routed text was when the guard let it pass.
type verdict struct {
	table  string // the logical name of the statement's table
	joined bool
}

// maxRemembered keeps batches, whose texts are long and differ, out.
const maxRemembered = 2048

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
