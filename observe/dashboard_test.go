// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/shardid/shardid/observe"
)

// dashboard is the part of a Grafana dashboard that the test reads.
type dashboard struct {
	Title         string `json:"title"`
	UID           string `json:"uid"`
	SchemaVersion int    `json:"schemaVersion"`
	Panels        []struct {
		ID      int    `json:"id"`
		Type    string `json:"type"`
		Title   string `json:"title"`
		Targets []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
}

func TestTheDashboardQueriesExistingMetrics(t *testing.T) {
	text, err := os.ReadFile("../deploy/grafana/shardid.json")
	check(err)
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if d.Title == "" || d.UID == "" || d.SchemaVersion < 36 || len(d.Panels) == 0 {
		t.Errorf("not a dashboard: %+v", d)
	}
	names := map[string]bool{}
	for _, f := range observe.Describe() {
		if f.Type != observe.Histogram {
			names[f.Name] = true
			continue
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			names[f.Name+suffix] = true
		}
	}
	name, ids := regexp.MustCompile(`\bshardid_\w+`), map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Type == "" || p.Title == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d is there twice, or shows nothing: %+v", p.ID, p)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			asked := name.FindAllString(target.Expr, -1)
			if len(asked) == 0 {
				t.Errorf("%s asks for no metric", p.Title)
			}
			for _, metric := range asked {
				if !names[metric] {
					t.Errorf("%s asks for %s, which there is not", p.Title, metric)
				}
			}
		}
	}
}

// Prometheus gives each sample the labels job and instance of the scrape. It renames labels of these names that a program
// reports, so a query by them would not tell one from the other.
func TestNoLabelIsOneThatPrometheusSetsItself(t *testing.T) {
	for _, f := range observe.Describe() {
		for _, label := range f.Labels {
			if label == "job" || label == "instance" {
				t.Errorf("%s has the label %s, which Prometheus replaces", f.Name, label)
			}
		}
	}
}
