// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// textFormat is Prometheus' text-based exposition format.
const textFormat = "text/plain; version=0.0.4; charset=utf-8"

// Metrics returns the handler that Prometheus scrapes.
func (s *Service) Metrics() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", textFormat)
		_ = WriteText(w, s.Gather()) // an error means that the client closed the connection
	})
}

// WriteText writes metrics in Prometheus' text format, version 0.0.4. It omits metrics without
// samples. The error is that of w.
func WriteText(w io.Writer, families []Family) error {
	var text []byte
	for _, f := range families {
		if len(f.Samples) > 0 {
			text = appendFamily(text, f)
		}
	}
	_, err := w.Write(text)
	return err
}

var (
	helpEscaper  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	valueEscaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

func appendFamily(text []byte, f Family) []byte {
	text = append(text, "# HELP "+f.Name+" "+helpEscaper.Replace(f.Help)+"\n# TYPE "+f.Name+" "+string(f.Type)+"\n"...)
	for _, s := range f.Samples {
		if f.Type != Histogram {
			text = appendLine(text, f.Name, f.Labels, s.Values, s.Value)
			continue
		}
		labels := slices.Concat(f.Labels, []string{"le"})
		for _, b := range s.Buckets {
			text = appendLine(text, f.Name+"_bucket", labels, slices.Concat(s.Values, []string{float(b.Bound)}), float64(b.Count))
		}
		text = appendLine(text, f.Name+"_sum", f.Labels, s.Values, s.Value)
		text = appendLine(text, f.Name+"_count", f.Labels, s.Values, float64(s.Count))
	}
	return text
}

func appendLine(text []byte, name string, labels, values []string, v float64) []byte {
	text = append(text, name...)
	separator := "{"
	for i, label := range labels {
		text = append(text, separator+label+`="`+valueEscaper.Replace(values[i])+`"`...)
		separator = ","
	}
	if len(labels) > 0 {
		text = append(text, '}')
	}
	return append(text, " "+float(v)+"\n"...)
}

func float(v float64) string {
	if math.IsInf(v, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
