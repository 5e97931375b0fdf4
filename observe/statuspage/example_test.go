// SPDX-License-Identifier: Apache-2.0

package statuspage_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/shardid/shardid/observe"
	"github.com/shardid/shardid/observe/statuspage"
)

// A program mounts the page behind its own authentication.
func ExampleNew() {
	service, err := observe.New(observe.Config{}) // Generators, Router, Statements
	if err != nil {
		panic(err)
	}
	page, err := statuspage.New(statuspage.Config{Service: service})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/debug/shardid/", page)

	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/debug/shardid/status.json", nil))
	fmt.Println(answer.Code, answer.Header().Get("Content-Type"))
	// Output: 200 application/json
}
