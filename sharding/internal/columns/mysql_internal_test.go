// SPDX-License-Identifier: Apache-2.0

package columns

import "testing"

func TestColumnsWhoseValuesComeBackAsTheyAreHaveACollation(t *testing.T) {
	for _, c := range [][5]string{
		// type, collation, character set and zone of the session, result
		{"varchar", "utf8mb4_bin", "utf8mb4", "UTC", "utf8mb4_bin"},
		{"varchar", "latin1_swedish_ci", "utf8mb4", "UTC", "latin1_swedish_ci"},
		{"varchar", "latin1_swedish_ci", "latin1", "UTC", "latin1_swedish_ci"},
		{"text", "utf8mb4_bin", "utf8mb3", "UTC", ""}, // which lacks characters of four bytes
		{"ENUM", "utf8mb4_bin", "utf8mb4", "UTC", ""},
		{"varbinary", "", "latin1", "UTC", "binary"},
		{"datetime", "", "utf8mb4", "CET", "datetime"},
		{"timestamp", "", "utf8mb4", "UTC", "timestamp"},
		{"timestamp", "", "utf8mb4", "+02:00", "timestamp"},
		{"timestamp", "", "utf8mb4", "Europe/Berlin", ""}, // 02:30 comes twice in October
		{"timestamp", "", "utf8mb4", "CET", ""},
		{"timestamp", "", "utf8mb4", "", ""},
	} {
		if got := equality(c[0], c[1], c[2], c[3]); got != c[4] {
			t.Errorf("%q: %q", c, got)
		}
	}
}
