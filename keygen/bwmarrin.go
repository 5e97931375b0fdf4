// SPDX-License-Identifier: Apache-2.0

package keygen

import (
	"encoding/base64"
	"fmt"
	"strconv"
)

// These encodings have the alphabets of the package bwmarrin/snowflake, for texts that its
// Base32 and Base58 wrote. Their texts do not sort like the ids. Its Base2 and Base36 are
// [Base2] and [Base36].
var (
	BwmarrinBase32 = newEncoding("bwmarrin base32", "ybndrfg8ejkmcpqxot1uwisza345h769")                           // of z-base-32
	BwmarrinBase58 = newEncoding("bwmarrin base58", "123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ") // as Flickr's
)

// EncodeBwmarrinBase64 returns the text that bwmarrin/snowflake's Base64 writes: the standard
// base64 of the decimal text.
func EncodeBwmarrinBase64(id int64) string {
	return base64.StdEncoding.EncodeToString(strconv.AppendInt(nil, id, 10))
}

// DecodeBwmarrinBase64 reads the texts that [EncodeBwmarrinBase64] writes for ids that are not
// negative. For any other text the error wraps [ErrSyntax].
func DecodeBwmarrinBase64(text string) (int64, error) {
	digits, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return 0, fmt.Errorf("%w: %s is not the base64 of a decimal id: %w", ErrSyntax, clip(text), err)
	}
	id, err := Decimal.Decode(string(digits))
	if err != nil {
		return 0, err
	}
	if EncodeBwmarrinBase64(id) != text {
		return 0, fmt.Errorf("%w: %s is another text of %d", ErrSyntax, clip(text), id)
	}
	return id, nil
}
