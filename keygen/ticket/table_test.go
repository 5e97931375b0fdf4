// SPDX-License-Identifier: Apache-2.0

package ticket_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/ticket"
)

// refusing is a server that answers every statement with the same error.
type refusing struct{ err error }

func (r refusing) Connect(context.Context) (driver.Conn, error) { return r, nil }
func (r refusing) Driver() driver.Driver                        { return nil }
func (r refusing) Prepare(string) (driver.Stmt, error)          { return nil, r.err }
func (r refusing) Begin() (driver.Tx, error)                    { return nil, r.err }
func (refusing) Close() error                                   { return nil }

// A server that refuses for good is not asked again until the patience of a call
// is over.
func TestAServerThatNoRetryCuresFailsAtOnceAndSaysWhatToDo(t *testing.T) {
	for text, cure := range map[string]string{
		"Error 1142 (42000): INSERT command denied to user 'app'@'%' for table 'Tickets64'": "give the user SELECT, INSERT, DELETE and LOCK TABLES",
		"Error 1044 (42000): Access denied for user 'app'@'%' to database 'tickets'":        "give the user SELECT, INSERT, DELETE and LOCK TABLES",
		"Error 1045 (28000): Access denied for user 'app'@'localhost'":                      "check user and password",
		"Error 1146 (42S02): Table 'tickets.Tickets64' doesn't exist":                       "create it",
		// What vtgate of Vitess v24 answers; make lanes compares it with the program.
		"Error 1235 (42000): VT12001: unsupported: system setting: auto_increment_increment": "set Config.Step to 1",
	} {
		db := sql.OpenDB(refusing{errors.New(text)})
		table, err := ticket.NewTable(ticket.TableConfig{DB: db, Numbering: ticket.Numbering{Offset: 1, Increment: 1}})
		if err != nil {
			t.Fatal(err)
		}
		g, err := ticket.New(t.Context(), ticket.Config{Servers: []ticket.Server{table}})
		if err == nil {
			_, err = g.Next(t.Context())
			err = errors.Join(err, g.Close())
		}
		var setup *keygen.SetupError
		if !errors.As(err, &setup) && !errors.Is(err, keygen.ErrUnknownTag) || !strings.Contains(err.Error(), cure) {
			t.Errorf("%s: %v", text, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
