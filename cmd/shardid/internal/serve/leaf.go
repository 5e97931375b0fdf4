package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/shardid/shardid/keygen"
)

// Leaf's codes, of SegmentIDGenImpl and SnowflakeIDGenImpl.
const (
	leafInit    = -1 // the tags could not be read
	leafUnknown = -2 // there is no such tag
	leafEmpty   = -3 // both segments are used up; of snowflake: the clock went back
)

// Names of the classes that a client of Leaf finds in an error.
const (
	leafException    = "com.sankuai.inf.leaf.server.exception.LeafServerException"
	missingParameter = "org.springframework.web.bind.MissingServletRequestParameterException"
)

// failure is the body of an error, in the order of Spring Boot 1.5.
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
func failLeaf(w http.ResponseWriter, r *http.Request, err error) {
	text := fmt.Sprintf("Result{id=%d, status=EXCEPTION}: %v", leafCode(err), err)
	fail(w, r, http.StatusInternalServerError, leafException, text)
}

func leafCode(err error) int {
	switch {
	case errors.Is(err, keygen.ErrUnknownTag):
		return leafUnknown
	case errors.Is(err, keygen.ErrStarved), errors.Is(err, keygen.ErrClockRollback), errors.Is(err, keygen.ErrExhausted):
		return leafEmpty
	}
	return leafInit
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		panic(err) // our own types
	}
	write(w, status, "application/json;charset=UTF-8", body)
}

func writeID(w http.ResponseWriter, id int64) {
	write(w, http.StatusOK, "text/plain;charset=UTF-8", strconv.AppendInt(nil, id, 10))
}

func write(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client is gone
}

// leafEpoch is that of Leaf's decoder, in Unix milliseconds.
const leafEpoch = 1288834974657

// decoded is in the order of Java's HashMap.
type decoded struct {
	Worker    string `json:"workerId"`   //nolint:tagliatelle // Leaf's name
	Sequence  string `json:"sequenceId"` //nolint:tagliatelle // Leaf's name
	Timestamp string `json:"timestamp"`
}

// decode takes an id apart as Leaf does, whatever layout the ids have that the server
// gives. Times are those of a zone, in Leaf the machine's.
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
