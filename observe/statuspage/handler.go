// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"bytes"
	"context"
	_ "embed" // the page and its style
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/observe"
)

// Config says what the page shows.
type Config struct {
	// Service has the generators, the statements and the router. It is required.
	Service *observe.Service
	// Store lists segments and leases. Defaults to none: the page then has no such tables.
	Store *sqlstore.Store
	// Migrations are *migrate.Jobs; the keys are their names on the page. Defaults to none.
	Migrations map[string]observe.Migration
}

// collectLimit limits the time that the queries for one page may take.
const collectLimit = 5 * time.Second

// New returns the handler of the page. Mount it under a path that ends in a slash:
// mux.Handle("/debug/shardid/", handler). It is safe for concurrent use.
func New(cfg Config) (http.Handler, error) {
	if cfg.Service == nil {
		return nil, errors.New("statuspage: Config.Service is nil; create it with observe.New")
	}
	return &handler{cfg}, nil
}

type handler struct{ cfg Config }

//go:embed page.html
var pageText string

//go:embed style.css
var style []byte

var page = template.Must(template.New("page").Funcs(functions).Parse(pageText))

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "the page only reads", http.StatusMethodNotAllowed)
		return
	}
	switch asked := requestPath(r); {
	case strings.HasSuffix(asked, "/"):
		h.page(w, r)
	case path.Base(asked) == "style.css":
		header.Set("Content-Type", "text/css; charset=utf-8")
		_, _ = w.Write(style) // an error means that the client closed the connection
	case path.Base(asked) == "status.json":
		h.json(w, r)
	default: // relative links need the slash
		to := "./" + path.Base(asked) + "/"
		if r.URL.RawQuery != "" {
			to += "?" + r.URL.RawQuery
		}
		header.Set("Location", to)
		w.WriteHeader(http.StatusMovedPermanently)
	}
}

// requestPath returns the path that the client requested, in the client's encoding, before any prefix was stripped from it.
func requestPath(r *http.Request) string {
	asked, _, _ := strings.Cut(r.RequestURI, "?")
	if asked == "" { // no server has read the request, as in a test
		return r.URL.EscapedPath()
	}
	return asked
}

func (h *handler) page(w http.ResponseWriter, r *http.Request) {
	status := h.status(r)
	var text bytes.Buffer
	if err := page.Execute(&text, status); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(text.Bytes()) // an error means that the client closed the connection
}

func (h *handler) json(w http.ResponseWriter, r *http.Request) {
	text, err := json.MarshalIndent(h.status(r), "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n')) // an error means that the client closed the connection
}

func (h *handler) status(r *http.Request) Status {
	ctx, cancel := context.WithTimeout(r.Context(), collectLimit)
	defer cancel()
	query := r.URL.Query()
	c := collector{Config: h.cfg, generators: h.cfg.Service.Generators()}
	return c.collect(ctx, question{countRows: query.Has("rows"), id: strings.TrimSpace(query.Get("id")), generator: query.Get("generator")})
}
