// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
)

// As LeafController.get ends: return String.valueOf(result.getId()).
func TestAnIDIsItsDigitsAsText(t *testing.T) {
	h := open(t, nil).Handler()
	for path, want := range map[string]string{"/api/segment/get/order": "1", "/api/segment/get/a%2Fb": "1", "/api/segment/get/item/": "1"} {
		w := ask(t, h, path)
		if w.Code != http.StatusOK || w.Body.String() != want || w.Header().Get("Content-Type") != "text/plain;charset=UTF-8" {
			t.Errorf("%s: %d %v %q", path, w.Code, w.Header(), w.Body)
		}
	}
	w := ask(t, h, "/api/snowflake/get/whatever")
	id, err := keygen.ParseID(w.Body.String())
	if err != nil {
		t.Fatalf("%v in %q", err, w.Body)
	}
	if parts, err := keygen.Twitter().Parse(int64(id)); err != nil || time.Since(parts.Time).Abs() > time.Minute {
		t.Errorf("%+v, %v", parts, err)
	}
}

// LeafController.get throws new LeafServerException(result.toString()), which is
// annotated with @ResponseStatus(code=HttpStatus.INTERNAL_SERVER_ERROR), and
// SegmentIDGenImpl has EXCEPTION_ID_KEY_NOT_EXISTS = -2. The fields, and their order, are
// those of DefaultErrorAttributes of Spring Boot 1.5.
func TestAnUnknownTagIsLeafsServerException(t *testing.T) {
	h := open(t, nil).Handler()
	for _, path := range []string{"/api/segment/get/nobody", "/api/segment/get/nobody%2F..", "/api/segment/get/%00%ff", "/api/segment/get/" + strings.Repeat("x", 129)} {
		w := ask(t, h, path)
		var body failure
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatalf("%s: %v in %q", path, err, w.Body)
		}
		if time.Since(time.UnixMilli(body.Timestamp)).Abs() > time.Minute || !strings.HasPrefix(body.Message, "Result{id=-2, status=EXCEPTION}: ") {
			t.Errorf("%s: %+v", path, body)
		}
		body.Timestamp, body.Message = 0, ""
		want := failure{0, 500, "Internal Server Error", "com.sankuai.inf.leaf.server.exception.LeafServerException", "", path}
		if w.Code != 500 || body != want {
			t.Errorf("%s: %d %+v", path, w.Code, body)
		}
	}
}

// The example is that of the comment of LeafMonitorController.decodeSnowflakeId. Java's
// HashMap has the names in this order.
func TestDecodeAnswersAsLeafs(t *testing.T) {
	h := decode(time.FixedZone("CST", 8*60*60))
	for query, want := range map[string]string{
		"?snowflakeId=1169786042799259000": `{"workerId":"39","sequenceId":"3448","timestamp":"1567733700834(2019-09-06 09:35:00.834)"}`,
		"?snowflakeId=x":                   `{"errorMsg":"snowflake Id反解析发生异常!"}`,
	} {
		if w := ask(t, h, "/decodeSnowflakeId"+query); w.Code != http.StatusOK || w.Body.String() != want {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	if w := ask(t, h, "/decodeSnowflakeId"); w.Code != 400 || !strings.Contains(w.Body.String(), `"message":"Required String parameter 'snowflakeId' is not present"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Spring gives a text the first of the types that the client prefers: RestTemplate makes a
// number of JSON, and cannot of a text.
func TestAnIDIsOfTheTypeThatTheClientPrefers(t *testing.T) {
	for accept, want := range map[string]string{
		"":                                     "text/plain",
		"*/*":                                  "text/plain",
		"text/*;q=.1":                          "text/plain",
		"application/json, application/*+json": "application/json",
		"application/*":                        "application/json",
		"text/plain, application/json, */*":    "text/plain",
		"application/json;q=0.5, text/csv":     "text/csv",
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": "text/html",
		"nonsense/, a\rb": "text/plain",
	} {
		if kind := preferred([]string{accept}); kind != want {
			t.Errorf("%q: %s", accept, kind)
		}
	}
	w := ask(t, open(t, nil).Handler(), "/api/segment/get/order", "Accept", "application/json")
	if kind := w.Header().Get("Content-Type"); kind != "application/json;charset=UTF-8" || w.Body.String() != "1" {
		t.Errorf("%s %s", kind, w.Body)
	}
	if cache := w.Header().Get("Cache-Control"); cache != "no-store" {
		t.Errorf("a proxy may keep the id: %q", cache)
	}
}

// In Leaf a tag whose segments cannot be taken has the code EXCEPTION_ID_TWO_SEGMENTS_ARE_NULL.
func TestADatabaseThatIsAwayIsLeafsServerException(t *testing.T) {
	s := open(t, nil)
	if err := s.cfg.DB.Close(); err != nil {
		t.Fatal(err)
	}
	for path, code := range map[string]string{"/api/segment/get/order": "-3", "/api/snowflake/get/x": "-1", "/api/segment/batch/order?n=2": "-3"} {
		w := ask(t, s.Handler(), path)
		for _, want := range []string{leafException, `"message":"Result{id=` + code + ", status=EXCEPTION}: "} {
			if w.Code != 500 || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
	}
	if w := ask(t, s.Handler(), "/readyz"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "database is closed") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// three is a source that has three ids, and does not answer any more then.
type three struct{ given bool }

func (s *three) Reserve(ctx context.Context, _ int64) (keygen.Span, error) {
	if s.given {
		<-ctx.Done()
		return keygen.Span{}, ctx.Err()
	}
	s.given = true
	return keygen.Span{First: 1, Step: 1, Count: 3}, nil
}

func TestATagWithoutIDsIsEmptyOnceTheWaitIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, func(c *Config) { c.Wait = 3 * time.Second })
		s.segments.open = func(ctx context.Context, _ string) (generator, error) {
			return segment.New(ctx, segment.Config{Source: &three{}})
		}
		h := s.Handler()
		for _, want := range []string{"1", "2", "3"} {
			if w := ask(t, h, "/api/segment/get/order"); w.Body.String() != want {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		}
		begin := time.Now()
		w := ask(t, h, "/api/segment/get/order")
		if w.Code != 500 || !strings.Contains(w.Body.String(), `"message":"Result{id=-3, status=EXCEPTION}: `) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if took := time.Since(begin); took != 3*time.Second {
			t.Errorf("after %v", took)
		}
		if w := ask(t, h, "/livez"); w.Code != http.StatusOK {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}
