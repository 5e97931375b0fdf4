// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import "testing"

func TestGroupsAreReadFromADerivedTable(t *testing.T) {
	w := newTwin(t, 60)
	for _, query := range []string{
		"SELECT * FROM (SELECT paid, COUNT(*) AS n FROM orders GROUP BY paid) AS t WHERE n > 1 ORDER BY n DESC, paid LIMIT 5",
		"WITH t AS (SELECT paid, SUM(id) AS s FROM orders WHERE id < 50 GROUP BY paid HAVING s > 3) SELECT s AS total, paid FROM t WHERE paid IS NOT NULL ORDER BY paid",
		"SELECT paid, SUM(n) OVER (ORDER BY paid) AS running FROM (SELECT paid, COUNT(*) AS n FROM orders GROUP BY paid) AS t ORDER BY paid",
		"SELECT n * 2 AS twice, paid FROM (SELECT paid, COUNT(*) AS n FROM orders GROUP BY 1) ORDER BY twice, paid",
		"SELECT * FROM (SELECT paid, COUNT(*) AS n FROM orders GROUP BY paid -- a comment\nHAVING COUNT(*) > 18) AS t",
		"SELECT paid, n FROM (SELECT paid, COUNT(*) AS n FROM orders GROUP BY paid -- a comment\nHAVING COUNT(*) > 5) AS t WHERE n -- another\n > 6 ORDER BY n -- and one more\n DESC, paid",
	} {
		w.same(t, query)
	}
	st, err := w.routed.Prepare("SELECT n FROM (SELECT paid, COUNT(*) AS n FROM orders WHERE id > ? GROUP BY paid) AS t WHERE n > ? ORDER BY n LIMIT ?")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	for _, least := range []int{0, 1} {
		var got, want int
		if err := st.QueryRow(3, least, 1).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if err := w.one.QueryRow("SELECT COUNT(*) AS n FROM orders WHERE id > 3 GROUP BY paid HAVING n > ? ORDER BY n", least).Scan(&want); err != nil || got != want {
			t.Errorf("%d, want %d, %v", got, want, err)
		}
	}
}
