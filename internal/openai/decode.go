package openai

import (
	"math"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode fills v from a JSON body. The error, if any, is a *Fault. Unknown fields are ignored; duplicate fields, invalid
// UTF-8 and anything after the value are faults. Safe for concurrent use.
func Decode(body []byte, v any) error { return decodeAt("", body, v) }

// decodeAt is Decode for a value that lies at the dotted path prefix of the body.
func decodeAt(prefix string, body []byte, v any) error {
	if err := json.Unmarshal(body, v, json.WithUnmarshalers(json.JoinUnmarshalers(
		json.UnmarshalFromFunc(decodeInt[int]), json.UnmarshalFromFunc(decodeInt[int64]), json.UnmarshalFromFunc(decodeInt[int32]),
	))); err != nil {
		return bodyFault(prefix, err)
	}
	return nil
}

// decodeInt accepts the integers that JSON writers in the field produce: 16, and 16.0 from languages whose numbers are
// all floats. null leaves the value as it is.
func decodeInt[T int | int32 | int64](dec *jsontext.Decoder, v *T) error {
	raw, err := dec.ReadValue()
	if err != nil || raw.Kind() == 'n' {
		return err
	}
	if raw.Kind() != '0' {
		return wanted("an integer", raw, dec)
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		f, ferr := strconv.ParseFloat(string(raw), 64)
		if ferr == nil && f != math.Trunc(f) {
			return wanted("an integer", raw, dec)
		}
		if ferr != nil || math.Abs(f) > 1<<53 {
			return wanted("an integer of at most 64 bits", raw, dec)
		}
		n = int64(f)
	}
	if int64(T(n)) != n {
		return wanted("an integer of at most 32 bits", raw, dec)
	}
	*v = T(n)
	return nil
}

// Strings is a field that takes one string or a list of them.
type Strings []string

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (s *Strings) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case '"':
		var one string
		if err := json.UnmarshalDecode(dec, &one); err != nil {
			return err
		}
		*s = Strings{one}
		return nil
	case '[':
		var list []string
		if err := json.UnmarshalDecode(dec, &list); err != nil {
			return err
		}
		*s = list
		return nil
	case 'n':
		*s = nil
		return dec.SkipValue()
	}
	return wantedNext("a string or a list of strings", dec)
}

// Prompt is the prompt of a completion: text or token ids, one or several. Exactly one of the two lists is set.
type Prompt struct {
	Texts  []string
	Tokens [][]int32
}

// Len is the number of prompts.
func (p *Prompt) Len() int { return len(p.Texts) + len(p.Tokens) }

// UnmarshalJSONFrom implements json.UnmarshalerFrom. The first element of a list decides what the list holds.
func (p *Prompt) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*p = Prompt{}
	switch dec.PeekKind() {
	case '"':
		p.Texts = make([]string, 1)
		return json.UnmarshalDecode(dec, &p.Texts[0])
	case 'n':
		return dec.SkipValue()
	case '[':
	default:
		return wantedNext("a string, a list of strings, a list of token ids or a list of lists of token ids", dec)
	}
	return p.list(dec)
}

// list reads a list; dec stands before its bracket.
func (p *Prompt) list(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	first := dec.PeekKind()
	if first == '0' {
		ids, err := tokenIDs(dec)
		p.Tokens = [][]int32{ids}
		return err
	}
	for dec.PeekKind() != ']' {
		if err := p.element(first, dec); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// element reads one prompt of a list of prompts; all have the kind of the first.
func (p *Prompt) element(first jsontext.Kind, dec *jsontext.Decoder) error {
	switch kind := dec.PeekKind(); {
	case kind == '"' && first == '"':
		var text string
		if err := json.UnmarshalDecode(dec, &text); err != nil {
			return err
		}
		p.Texts = append(p.Texts, text)
		return nil
	case kind == '[' && first == '[':
		if _, err := dec.ReadToken(); err != nil {
			return err
		}
		ids, err := tokenIDs(dec)
		p.Tokens = append(p.Tokens, ids)
		return err
	case first == '"':
		return wantedNext("a string like the first element", dec)
	case first == '[':
		return wantedNext("a list of token ids like the first element", dec)
	}
	return wantedNext("a string, a token id or a list of token ids", dec)
}

// tokenIDs reads the rest of a list of token ids, whose bracket dec has read.
func tokenIDs(dec *jsontext.Decoder) ([]int32, error) {
	ids := []int32{}
	for dec.PeekKind() != ']' {
		if dec.PeekKind() != '0' {
			return nil, wantedNext("a token id", dec)
		}
		var id int32
		if err := decodeInt(dec, &id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	_, err := dec.ReadToken()
	return ids, err
}

// LogitBias maps token ids to what is added to their logits.
type LogitBias map[int32]float64

// UnmarshalJSONFrom implements json.UnmarshalerFrom: the keys are token ids written as strings.
func (b *LogitBias) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case 'n':
		return dec.SkipValue()
	case '{':
	default:
		return wantedNext("an object from token ids to numbers", dec)
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	*b = LogitBias{}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil {
			return &mismatch{at: dec.StackPointer(), want: "a token id written as a string", got: strconv.Quote(key)}
		}
		if dec.PeekKind() != '0' {
			return wantedNext("a number", dec)
		}
		raw, err := dec.ReadValue()
		if err != nil {
			return err
		}
		bias, err := strconv.ParseFloat(string(raw), 64)
		if err != nil {
			return wanted("a number of at most 64 bits", raw, dec)
		}
		(*b)[int32(id)] = bias
	}
	_, err := dec.ReadToken()
	return err
}

// given reports whether a field was sent with a value other than null.
func given(v jsontext.Value) bool { return len(v) > 0 && v.Kind() != 'n' }
