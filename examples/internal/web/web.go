// SPDX-License-Identifier: Apache-2.0

// Package web is the HTTP interface of a shop. It does not depend on how the shop stores its rows.
package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/shardid/shardid/keygen"
)

// Errors of a Shop.
var (
	ErrMissing = errors.New("there is none")
	ErrTaken   = errors.New("somebody has this e-mail address already")
)

// User is a customer.
type User struct {
	ID    keygen.ID `json:"id"` // a string in JSON, because JavaScript rounds large numbers
	Name  string    `json:"name"`
	Email string    `json:"email"`
}

// Item is one product of an order.
type Item struct {
	ProductID int64 `json:"product"`
	Quantity  int64 `json:"quantity"`
}

// Order is a purchase of a user.
type Order struct {
	ID     keygen.ID `json:"id"`
	UserID keygen.ID `json:"user"`
	Items  []Item    `json:"items"`
}

// Sold is a product and how many of it were sold.
type Sold struct {
	Product string `db:"product" json:"product"`
	Sold    int64  `db:"sold"    json:"sold"`
}

// Shop stores and finds the rows.
type Shop interface {
	AddUser(ctx context.Context, u *User) error // sets its ID; ErrTaken
	UserByEmail(ctx context.Context, email string) (User, error)
	AddOrder(ctx context.Context, o *Order) error // sets its ID
	Order(ctx context.Context, id keygen.ID) (Order, error)
	OrdersOf(ctx context.Context, user keygen.ID) ([]Order, error)
	BestSellers(ctx context.Context, limit int) ([]Sold, error)
}

// Handler returns the handler of the shop's requests.
func Handler(shop Shop, page http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /users", func(w http.ResponseWriter, r *http.Request) {
		u, ok := body[User](w, r)
		if ok {
			answer(w, &u, shop.AddUser(r.Context(), &u))
		}
	})
	mux.HandleFunc("GET /users", func(w http.ResponseWriter, r *http.Request) {
		u, err := shop.UserByEmail(r.Context(), r.FormValue("email"))
		answer(w, u, err)
	})
	mux.HandleFunc("GET /users/{id}/orders", func(w http.ResponseWriter, r *http.Request) {
		id, ok := number(w, r)
		if ok {
			orders, err := shop.OrdersOf(r.Context(), id)
			answer(w, orders, err)
		}
	})
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		o, ok := body[Order](w, r)
		if ok {
			answer(w, &o, shop.AddOrder(r.Context(), &o))
		}
	})
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, ok := number(w, r)
		if ok {
			o, err := shop.Order(r.Context(), id)
			answer(w, o, err)
		}
	})
	mux.HandleFunc("GET /bestsellers", func(w http.ResponseWriter, r *http.Request) {
		list, err := shop.BestSellers(r.Context(), 10)
		answer(w, list, err)
	})
	mux.Handle("/debug/shardid/", page)
	return mux
}

const largestBody = 1 << 20

func body[T any](w http.ResponseWriter, r *http.Request) (v T, ok bool) {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, largestBody)).Decode(&v); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return v, false
	}
	return v, true
}

func number(w http.ResponseWriter, r *http.Request) (keygen.ID, bool) {
	id, err := keygen.ParseID(r.PathValue("id"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return id, err == nil
}

func answer(w http.ResponseWriter, v any, err error) {
	switch {
	case err == nil:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) //nolint:errchkjson // the client may be gone
	case errors.Is(err, ErrMissing):
		http.Error(w, err.Error(), http.StatusNotFound)
	case errors.Is(err, ErrTaken):
		http.Error(w, err.Error(), http.StatusConflict)
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
