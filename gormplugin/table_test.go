package gormplugin_test

import (
	"bufio"
	"database/sql"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/shardsuite"
)

func TestEveryCellOfTheTableHolds(t *testing.T) {
	shardsuite.Run(t, shardsuite.Databases{
		Open: func(t testing.TB) (home, east, west *sql.DB) {
			rec := &recorder{}
			return rec.open(t, "home"), rec.open(t, "east"), rec.open(t, "west")
		},
		Dialector: sqliteOn,
	})
}

func TestEveryCellOfTheTableHasATest(t *testing.T) {
	documented := documentedCells(t)
	if len(documented) < 40 {
		t.Fatalf("only %d cells were found in doc.go", len(documented))
	}
	tested := shardsuite.Cells()
	for _, cell := range documented {
		if !slices.Contains(tested, cell) {
			t.Errorf("%v has no test", cell)
		}
	}
	for _, cell := range tested {
		if !slices.Contains(documented, cell) {
			t.Errorf("%v is tested and stands not in doc.go", cell)
		}
	}
}

// documentedCells reads the table in doc.go. A dash is no promise.
func documentedCells(t *testing.T) []shardsuite.Cell {
	t.Helper()
	f, err := os.Open("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var columns []string
	var cells []shardsuite.Cell
	for lines := bufio.NewScanner(f); lines.Scan(); {
		row, ok := strings.CutPrefix(lines.Text(), "//\t")
		if !ok || !strings.Contains(row, " | ") {
			continue
		}
		fields := strings.Split(row, "|")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		if columns == nil {
			columns = fields
			continue
		}
		for i := 1; i < len(fields); i++ {
			if fields[i] != "-" {
				cells = append(cells, shardsuite.Cell{Statement: fields[0], Column: shardsuite.Column(columns[i])})
			}
		}
	}
	return cells
}
