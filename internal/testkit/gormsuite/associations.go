// SPDX-License-Identifier: Apache-2.0

package gormsuite

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
)

var associationTests = []test{
	{"EveryAssociationIsFilledByItsOwnModelsRule", everyAssociation},
	{"KeysOfAssociationsAreDrawnBeforeTheTransaction", drawnBefore},
	{"ABelongsToRowThatIsThereIsNeverPointedPast", existingBelongsTo},
	{"AssociationsOfASliceAreFilled", sliceOfParents},
	{"AppendedRowsAreFilled", appended},
}

func fullCustomer(name string) Customer {
	return Customer{
		Name: name, Company: Company{Name: name + " inc"}, Boss: &Customer{Name: name + "'s boss"},
		Card: Card{Number: "1"}, Pets: []Pet{{Name: name + "'s dog"}, {Name: name + "'s cat"}},
		Notes: []Note{{Text: "n"}}, Labels: []Label{{Name: name + "'s x"}, {Name: name + "'s y"}}, Badges: []Badge{{Name: "b"}},
	}
}

func everyAssociation(t *testing.T, e *env) {
	c := fullCustomer("a")
	must(t, e.Create(&c).Error)
	checkCustomer(t, e, c)
	same(t, "has many", c.Pets[0].ID+c.Pets[1].ID, 1001)
}

// checkCustomer compares a customer and its associations with the tables.
func checkCustomer(t *testing.T, e *env, c Customer) {
	t.Helper()
	if c.ID < first || c.Company.ID < first || c.CompanyID != c.Company.ID || c.Boss.ID < first || *c.BossID != c.Boss.ID {
		t.Errorf("belongs to: %+v", c)
	}
	if int64(c.Card.ID) < first || c.Card.CustomerID != c.ID || c.Notes[0].ID < first || c.Notes[0].OwnerID != c.ID {
		t.Errorf("has one, polymorphic: %+v", c)
	}
	var stored Customer
	bare := e.bare(t)
	must(t, bare.SetupJoinTable(&Customer{}, "Badges", &Holding{}))
	must(t, bare.Preload("Company").Preload("Boss").Preload("Card").Preload("Pets", order).Preload("Notes").
		Preload("Labels", order).Preload("Badges").First(&stored, c.ID).Error)
	sameJSON(t, stored, c)
	var holdings []Holding
	must(t, bare.Find(&holdings, "customer_id = ?", c.ID).Error)
	if len(holdings) != 1 || holdings[0].ID < first || holdings[0].BadgeID != c.Badges[0].ID {
		t.Errorf("join rows with a key: %+v", holdings)
	}
}

func order(db *gorm.DB) *gorm.DB { return db.Order("id") }

func drawnBefore(t *testing.T, e *env) {
	c := fullCustomer("a")
	must(t, e.Create(&c).Error)
	// Each kind of row is drawn once, with the customer and the boss, and the join row's with the
	// badge's. All are drawn at the top: pets have their own source.
	fills := e.gen.take()
	same(t, "reservations", len(fills), 8)
	total := 0
	for _, n := range fills {
		total += n
	}
	same(t, "ids", total, 9)
}

func existingBelongsTo(t *testing.T, e *env) {
	old := Company{Name: "old"}
	must(t, e.Create(&old).Error)
	again := Customer{Name: "a", Company: Company{Name: "old"}}
	err := e.Create(&again).Error
	if e.Finds != None {
		must(t, err)
		same(t, "foreign key", again.CompanyID, old.ID)
		same(t, "id", again.Company.ID, old.ID)
		return
	}
	if !errors.Is(err, gormplugin.ErrSkipped) {
		t.Errorf("a row that was skipped: %v", err)
	}
	same(t, "ids", again.ID+int64(again.Company.ID), 0)
	e.sameRows(t, "customers", map[string]int64{})
}

func sliceOfParents(t *testing.T, e *env) {
	customers := []Customer{fullCustomer("a"), fullCustomer("b")}
	shared := &Customer{Name: "shared"}
	customers[0].Boss, customers[1].Boss = shared, shared
	must(t, e.Create(&customers).Error)
	checkCustomer(t, e, customers[0])
	checkCustomer(t, e, customers[1])
}

func appended(t *testing.T, e *env) {
	c := Customer{Name: "a"}
	must(t, e.Create(&c).Error)
	pets := []Pet{{Name: "x"}, {Name: "y"}}
	must(t, e.Model(&c).Association("Pets").Append(&pets))
	must(t, e.Model(&c).Association("Labels").Append(&Label{Name: "l"}))
	e.sameRows(t, "pets", map[string]int64{"x": 500, "y": 501})
	e.sameRows(t, "labels", map[string]int64{"l": c.Labels[0].ID})
	if c.Labels[0].ID < first || c.Pets[1].ID != 501 || c.Pets[1].CustomerID != c.ID {
		t.Errorf("%+v", c)
	}
}
