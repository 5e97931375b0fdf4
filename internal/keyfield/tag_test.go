// SPDX-License-Identifier: Apache-2.0

package keyfield_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/keyfield"
)

func TestTags(t *testing.T) {
	for text, want := range map[string]keyfield.Tag{
		"": {}, "order": {Name: "order"}, " order ": {Name: "order"}, "-": {Never: true},
		"order,hooks":               {Name: "order", Hooks: true},
		",base62":                   {Encoding: keyfield.Base62},
		"order, dec, pad=12, hooks": {Name: "order", Encoding: keyfield.Dec, Pad: 12, Hooks: true},
		"order,pad=64,crockford":    {Name: "order", Encoding: keyfield.Crockford, Pad: 64},
	} {
		if got, err := keyfield.ParseTag(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestATagThatCannotBeHonouredIsRefused(t *testing.T) {
	for text, reason := range map[string]string{
		"order,hook": `unknown option "hook"`, "order,": "", "order,,dec": `unknown option ""`,
		"order,pad": `unknown option "pad"`, "order,pad=0": "from 1 to 64", "order,pad=65": "from 1 to 64", "order,pad=x": "from 1 to 64",
		"order,base36,base62": "twice", "order,dec,dec": "twice", "order,hooks,hooks": "twice", "order,pad=1,pad=2": "twice",
		"order,base36=1": "unknown option", "-,hooks": "never filled",
	} {
		_, err := keyfield.ParseTag(text)
		if reason == "" {
			if err != nil {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), reason) || !strings.Contains(err.Error(), "pad=N") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAllThreeTagsAreRead(t *testing.T) {
	order := keyfield.Tag{Name: "order"}
	padded := keyfield.Tag{Name: "order", Encoding: keyfield.Base36, Pad: 12}
	for tag, want := range map[string]keyfield.Tag{
		`keygen:"order"`:                                          order,
		`gorm:"primaryKey;keygen:order"`:                          order,
		`gorm:"primaryKey; KeyGen :order,base36,pad=12;size:9"`:   padded,
		`gorm:"keygen"`:                                           {},
		`db:"id,keygen=order"`:                                    order,
		`db:"id,omitempty,keygen=order,pad=12,base36"`:            padded,
		`db:"id,keygen"`:                                          {},
		`db:"id,keygen=-"`:                                        {Never: true},
		`db:"id,keygen=order" gorm:"keygen:order" keygen:"order"`: order,
	} {
		if got, found, err := keyfield.ReadTag(reflect.StructTag(tag)); err != nil || !found || got != want {
			t.Errorf("%s: %+v, %v, %v", tag, got, found, err)
		}
	}
	for _, tag := range []string{``, `gorm:"primaryKey"`, `db:"id"`, `db:"keygen"`, `db:"id,base36"`, `gorm:"default:a\\;keygen:b"`} {
		if got, found, err := keyfield.ReadTag(reflect.StructTag(tag)); err != nil || found {
			t.Errorf("%s: %+v, %v", tag, got, err)
		}
	}
}

func TestTagsThatDisagreeAreAnError(t *testing.T) {
	for _, tag := range []string{
		`keygen:"order" db:"id,keygen=other"`, `keygen:"order" gorm:"keygen:other"`, `gorm:"keygen:order" db:"id,keygen=other"`,
		`keygen:"-" db:"id,keygen=order"`, `keygen:"order" db:"id,keygen=order,base36"`, `keygen:"" gorm:"keygen:order"`,
	} {
		if _, found, err := keyfield.ReadTag(reflect.StructTag(tag)); err == nil || found || !strings.Contains(err.Error(), "keep one") {
			t.Errorf("%s: %v, %v", tag, found, err)
		}
	}
	if _, _, err := keyfield.ReadTag(`gorm:"keygen:order,later"`); err == nil {
		t.Error("an unknown option was accepted")
	}
}
