// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"
	"testing"
)

func TestRedactDSNHidesSecretsAndShowsTheRest(t *testing.T) {
	for in, want := range map[string]string{
		"app:s3cret@tcp(db:3306)/shop?parseTime=true":  "app:***@tcp(db:3306)/shop?parseTime=true",
		"app:a@b:c/d?e@tcp(db:3306)/shop":              "app:***@tcp(db:3306)/shop",
		"app:@unix(/run/s.sock)/shop":                  "app:***@unix(/run/s.sock)/shop",
		"app@tcp(db:3306)/shop":                        "app@tcp(db:3306)/shop",
		"mysql://app:s3cret@db:3306/shop?charset=utf8": "mysql://app:***@db:3306/shop?charset=utf8",
		"MariaDB://app:a://b@db/shop":                  "MariaDB://app:***@db/shop",
		"postgres://app:s3c:r@t/?@db:5432/shop":        "postgres://app:***@db:5432/shop",
		"postgresql://db/shop?user=a&password=b":       "postgresql://db/shop?user=a&password=***",
		"host=db user=app password='a b@c' dbname=x":   "host=db user=app password=***",
		"host=db user=app PassWord = s3cret":           "host=db user=app PassWord =***",
		"mysql://app@db/shop":                          "mysql://***@db/shop",
		"app://s3cret@tcp(db)/shop":                    "app:***@tcp(db)/shop",
		"mysql://s3cret@tcp(db)/shop":                  "mysql:***@tcp(db)/shop",
		"mysql://db/shop?password=a@b":                 "mysql://***",
		"mysql://db/shop?x=1&password=s3cret&y=2":      "mysql://db/shop?x=1&password=***",
		"app:s3cret@tcp(db)/shop?x=1&access_token=t":   "app:***@tcp(db)/shop?x=1&access_token=***",
		"app:a@b?token=c@tcp(db)/shop":                 "app:***",
		"app:s3cret":                                   "app:***",
		"mysql://app:s3cret":                           "mysql://app:***",
		"file:shop.db?_pragma=busy_timeout(5000)":      "file:shop.db?_pragma=busy_timeout(5000)",
		"file:shop.db?_pragma=key('s3cret')":           "file:shop.db?_pragma=key(***",
		"file:shop.db?_pragma=hexkey%28'73'%29":        "file:shop.db?_pragma=hexkey%28***",
		"file:shop.db?_auth&_auth_user=a&_auth_pass=p": "file:shop.db?_auth&_auth_user=***",
		"sqlite:///var/lib/shop.db":                    "sqlite:///var/lib/shop.db",
		"/var/lib/shop.db":                             "/var/lib/shop.db",
		":memory:":                                     ":memory:",
		"":                                             "",
	} {
		if got := RedactDSN(in); got != want {
			t.Errorf("RedactDSN(%q) = %q, want %q", in, got, want)
		}
	}
}

// FuzzRedactDSN knows the position of the password, so it knows the result: the DSN with *** there,
// or less.
func FuzzRedactDSN(f *testing.F) {
	for _, p := range []string{"s3cret", "a@b", "//x", "x:y", "p/q?token=z", "a@b?password=c", "key(", "@tcp(h)/db", "", "mysql://u:p@h", "%28key%3d"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, password string) {
		for _, around := range [][2]string{
			{"app:", "@tcp(db.example:3306)/shop?parseTime=true"},
			{"app:", "@/shop"},
			{"mysql://app:", "@db.example:3306/shop"},
			{"postgres://app:", "@db.example:5432/shop?sslmode=disable"},
			{"host=db user=app password=", " dbname=shop"},
			{"file:shop.db?_auth_pass=", ""},
			{"/shop?x=1&password=", "&y=2"},
		} {
			checkRedacted(t, around[0], password, around[1])
		}
		if !strings.Contains(password, "@") { // else it reads as a host
			checkRedacted(t, "app:", password, "")
		}
	})
}

func checkRedacted(t *testing.T, before, password, after string) {
	t.Helper()
	if password == "" {
		return
	}
	got := RedactDSN(before + password + after)
	rest, found := strings.CutSuffix(got, "***"+after)
	if !found {
		rest, found = strings.CutSuffix(got, "***")
	}
	if !found || !strings.HasPrefix(before, rest) {
		t.Fatalf("password %q: RedactDSN(%q) = %q", password, before+password+after, got)
	}
}
