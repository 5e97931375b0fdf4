// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/shardid/shardid/keygen"
)

// These are Leaf's codes, from SegmentIDGenImpl and SnowflakeIDGenImpl.
const (
	leafInit    = -1 // the generator does not exist (yet)
	leafUnknown = -2 // the tag does not exist
	leafEmpty   = -3 // no segment could be fetched; for snowflake: the clock went back
)

// These are the names of the classes in errors for Leaf's clients.
const (
	leafException    = "com.sankuai.inf.leaf.server.exception.LeafServerException"
	missingParameter = "org.springframework.web.bind.MissingServletRequestParameterException"
)

// failure is the body of an error, with the fields in the order of Spring Boot 1.5.
type failure struct {
	Timestamp int64  `json:"timestamp"` // Unix milliseconds
	Status    int    `json:"status"`
	Error     string `json:"error"`
	Exception string `json:"exception,omitempty"`
	Message   string `json:"message"`
	Path      string `json:"path"`
}

func fail(w http.ResponseWriter, r *http.Request, status int, exception, message string) {
	writeJSON(w, status, failure{time.Now().UnixMilli(), status, http.StatusText(status), exception, message, r.URL.EscapedPath()})
}

// failLeaf answers with LeafServerException. Its message begins with Leaf's.
func failLeaf(w http.ResponseWriter, r *http.Request, code int, err error) {
	text := fmt.Sprintf("Result{id=%d, status=EXCEPTION}: %v", code, err)
	fail(w, r, http.StatusInternalServerError, leafException, text)
}

// segmentCode returns leafEmpty when no segment can be fetched, whatever the error of the
// database is, as Leaf does from the first request for a tag on.
func segmentCode(err error) int {
	switch {
	case errors.Is(err, keygen.ErrUnknownTag):
		return leafUnknown
	case errors.Is(err, keygen.ErrClosed), errors.Is(err, errTooManyTags):
		return leafInit
	}
	return leafEmpty
}

func snowflakeCode(err error) int {
	if errors.Is(err, keygen.ErrStarved) || errors.Is(err, keygen.ErrClockRollback) || errors.Is(err, keygen.ErrExhausted) {
		return leafEmpty
	}
	return leafInit
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		panic(err) // types of this package, which can be encoded
	}
	write(w, status, "application/json;charset=UTF-8", body)
}

// writeID answers with an id as text. Its content type is the one that Spring chooses for a
// text: the type that the client accepts, which decides how the client parses it.
func writeID(w http.ResponseWriter, r *http.Request, id int64) {
	write(w, http.StatusOK, preferred(r.Header.Values("Accept"))+";charset=UTF-8", strconv.AppendInt(nil, id, 10))
}

// preferred returns the type of the highest quality in the lines of an Accept header; of
// equal ones, the first.
func preferred(accept []string) string {
	best, quality := "text/plain", 0.0
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		q, err := strconv.ParseFloat(params["q"], 64)
		if err != nil {
			q = 1
		}
		if q > quality {
			best, quality = concrete(kind), q
		}
	}
	return best
}

// concrete returns the type that Spring uses for a type with a wildcard.
func concrete(kind string) string {
	switch {
	case kind == "application/*":
		return "application/json"
	case strings.Contains(kind, "*"):
		return "text/plain"
	}
	return kind
}

// write forbids proxies to cache the answer: an id from a cache would be used twice.
func write(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // digits, or JSON; when it fails, the client is gone
}

// leafEpoch is the epoch of Leaf's decoder, in Unix milliseconds.
const leafEpoch = 1288834974657

// decoded has its fields in the order of Java's HashMap.
type decoded struct {
	Worker    string `json:"workerId"`   //nolint:tagliatelle // Leaf's name
	Sequence  string `json:"sequenceId"` //nolint:tagliatelle // Leaf's name
	Timestamp string `json:"timestamp"`
}

// decode splits an id as Leaf does, whatever layout the server's ids have. Times are in the
// given zone; Leaf uses the machine's.
func decode(zone *time.Location) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || !r.Form.Has("snowflakeId") {
			fail(w, r, http.StatusBadRequest, missingParameter, "Required String parameter 'snowflakeId' is not present")
			return
		}
		id, err := strconv.ParseInt(r.Form.Get("snowflakeId"), 10, 64)
		if err != nil {
			writeJSON(w, http.StatusOK, map[string]string{"errorMsg": "snowflake Id反解析发生异常!"}) //nolint:gosmopolitan // Leaf's own text
			return
		}
		millis := id>>22 + leafEpoch
		writeJSON(w, http.StatusOK, decoded{
			Worker:    strconv.FormatInt(id>>12&(1<<10-1), 10),
			Sequence:  strconv.FormatInt(id&(1<<12-1), 10),
			Timestamp: fmt.Sprintf("%d(%s)", millis, time.UnixMilli(millis).In(zone).Format("2006-01-02 15:04:05.000")),
		})
	}
}
