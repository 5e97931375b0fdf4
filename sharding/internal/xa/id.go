// SPDX-License-Identifier: Apache-2.0

package xa

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

// format is the formatID of our XIDs, "shid" as a number.
const format = 0x73686964

// ID names a branch.
type ID struct {
	Transaction string // 32 random hexadecimal digits
	Decider     string // the identity of the deciding database, 32 hexadecimal digits
	Branch      int    // from 1: a server may have several databases of one transaction
}

// NewTransaction returns a unique name for a transaction.
func NewTransaction() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// gid returns the name in PostgreSQL's form, a single text.
func (id ID) gid() string {
	return fmt.Sprintf("shardid-%s-%s-%d", id.Transaction, id.Decider, id.Branch)
}

// on returns the quoted name for a server.
func (id ID) on(d dialect.Dialect) string {
	if d.Name() == "postgres" {
		return "'" + id.gid() + "'"
	}
	return fmt.Sprintf("'%s','%s-%d',%d", id.Transaction, id.Decider, id.Branch, format)
}

// parse reads a name in the form in which PostgreSQL lists it. It refuses names of other programs.
func parse(gid string) (id ID, ours bool) {
	rest, ours := strings.CutPrefix(gid, "shardid-")
	parts := strings.Split(rest, "-")
	if !ours || len(parts) != 3 || !isName(parts[0]) || !isName(parts[1]) {
		return ID{}, false
	}
	n, err := strconv.Atoi(parts[2])
	return ID{parts[0], parts[1], n}, err == nil && n > 0
}

// parseXID reads a name in the form in which XA RECOVER lists it.
func parseXID(formatID int64, gtridLength, bqualLength int, data string) (ID, bool) {
	if formatID != format || gtridLength < 0 || bqualLength < 0 || gtridLength+bqualLength != len(data) {
		return ID{}, false
	}
	return parse("shardid-" + data[:gtridLength] + "-" + data[gtridLength:])
}

func isName(text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == 16
}
