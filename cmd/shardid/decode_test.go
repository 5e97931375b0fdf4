// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"
)

func TestDecodeShowsThePartsOfAnID(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"twitter": {[]string{"1541815603606036480", "1"}, "" +
			"                 ID  TIME (UTC)               DATACENTER  WORKER  SEQUENCE  ID % 1024\n" +
			"1541815603606036480  2022-06-28 16:07:40.105          11      26         0          0\n" +
			"                  1  2010-11-04 01:42:54.657           0       0         1          1\n"},
		"seconds": {[]string{"--layout", "baidu", "8193"}, "" +
			"  ID  TIME (UTC)           WORKER  SEQUENCE  ID % 1024\n" +
			"8193  2016-05-19 16:00:00       1         1          1\n"},
		"another epoch of a known layout": {[]string{"--epoch", "2024-01-01T00:00:00Z", "4194304"}, "" +
			"     ID  TIME (UTC)               DATACENTER  WORKER  SEQUENCE  ID % 1024\n" +
			"4194304  2024-01-01 00:00:00.001           0       0         0          0\n"},
		"fields of one's own": {[]string{"--layout", "time:20, sequence:4, bucket:3", "--epoch", "1704067200000", "--unit", "1us", "--form", "base16", "ff"}, "" +
			" ID  TIME (UTC)                     SEQUENCE  BUCKET  ID % 1024\n" +
			"255  2024-01-01 00:00:00.000001000        15       7        255\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if o := succeed(t, append([]string{"decode"}, test.args...)...); o.stdout != test.want {
				t.Errorf("got\n%swant\n%s", o.stdout, test.want)
			}
		})
	}
}

func TestDecodePrintsJSON(t *testing.T) {
	o := succeed(t, "decode", "--json", "--form", "base62", "1", "AzL8n0Y58m7")
	var got []map[string]any
	if err := json.Unmarshal([]byte(o.stdout), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0]["id"] != "1" || got[1]["id"] != "9223372036854775807" || got[1]["slot_1024"] != 1023.0 || got[0]["time"] != "2010-11-04T01:42:54.657Z" {
		t.Errorf("%s", o.stdout)
	}
	for _, key := range []string{"id", "time", "datacenter", "worker", "sequence", "bucket", "slot_1024"} {
		if _, ok := got[0][key]; !ok || len(got[0]) != 7 {
			t.Errorf("no key %s, or others, in %s", key, o.stdout)
		}
	}
}
