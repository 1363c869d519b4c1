package main

import (
	"io"
	"math"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/quire-ai/quire/gguf"
)

// writeInspectJSON writes a file as one JSON object, metadata in the file's order. It writes while it reads, since a
// vocabulary may have hundreds of thousands of tokens.
func writeInspectJSON(w io.Writer, f *gguf.File, tensors bool) error {
	enc := jsontext.NewEncoder(w, jsontext.WithIndent("  "), jsontext.AllowInvalidUTF8(true))
	j := &jsonWriter{enc: enc}
	j.token(jsontext.BeginObject)
	j.field("path", f.Path)
	j.field("size", f.Size)
	j.field("version", f.Version)
	j.field("alignment", f.Alignment)
	j.field("data_start", f.DataStart)
	j.token(jsontext.String("types"))
	j.token(jsontext.BeginArray)
	for _, s := range sumTypes(f) {
		j.value(struct {
			Type    string `json:"type"`
			Tensors int    `json:"tensors"`
			Values  uint64 `json:"values"`
			Bytes   uint64 `json:"bytes"`
		}{s.Type.String(), s.Tensors, s.Values, s.Bytes})
	}
	j.token(jsontext.EndArray)
	j.token(jsontext.String("metadata"))
	j.token(jsontext.BeginObject)
	for key, v := range f.Metadata.All() {
		j.token(jsontext.String(key))
		j.metadata(v)
	}
	j.token(jsontext.EndObject)
	if tensors {
		j.token(jsontext.String("tensors"))
		j.token(jsontext.BeginArray)
		for i := range f.Tensors {
			t := &f.Tensors[i]
			j.value(struct {
				Name   string   `json:"name"`
				Type   string   `json:"type"`
				Shape  []uint64 `json:"shape"`
				Offset uint64   `json:"offset"`
				Bytes  uint64   `json:"bytes"`
			}{t.Name, t.Type.String(), t.Shape, t.Offset, t.Size})
		}
		j.token(jsontext.EndArray)
	}
	j.token(jsontext.EndObject)
	return j.err
}

// jsonWriter keeps the first error.
type jsonWriter struct {
	enc *jsontext.Encoder
	err error
}

func (j *jsonWriter) token(t jsontext.Token) {
	if j.err == nil {
		j.err = j.enc.WriteToken(t)
	}
}

func (j *jsonWriter) value(v any) {
	if j.err == nil {
		j.err = json.MarshalEncode(j.enc, v)
	}
}

func (j *jsonWriter) field(name string, v any) {
	j.token(jsontext.String(name))
	j.value(v)
}

// metadata writes a value. Numbers that JSON cannot hold (NaN, infinity) become strings.
func (j *jsonWriter) metadata(v gguf.Value) {
	switch v.Kind() {
	case gguf.Array:
		j.token(jsontext.BeginArray)
		for e := range v.Elements() {
			j.metadata(e)
		}
		j.token(jsontext.EndArray)
	case gguf.String:
		text, _ := v.Text()
		j.token(jsontext.String(text))
	case gguf.Bool:
		b, _ := v.Bool()
		j.token(jsontext.Bool(b))
	case gguf.Float32, gguf.Float64:
		if x, _ := v.Float(); math.IsNaN(x) || math.IsInf(x, 0) {
			j.token(jsontext.String(strconv.FormatFloat(x, 'g', -1, 64)))
			return
		}
		if j.err == nil {
			j.err = j.enc.WriteValue(jsontext.Value(v.String()))
		}
	default: // integers of any size
		if j.err == nil {
			j.err = j.enc.WriteValue(jsontext.Value(v.String()))
		}
	}
}
