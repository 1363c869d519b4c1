package openai

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Message is one message of a conversation.
type Message struct {
	Role    string
	Content *string        // the text; parts of a list are joined by line ends; nil when null or left out
	Raw     jsontext.Value // the object as it was sent, for templates that read other keys
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (m *Message) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '{' {
		return wantedNext("an object with role and content", dec)
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	at := dec.StackPointer()
	var fields struct {
		Role    string  `json:"role"`
		Content content `json:"content"`
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return below(at, err)
	}
	if fields.Role == "" {
		return &mismatch{at: at + "/role", want: "a role such as user or assistant", got: "none"}
	}
	*m = Message{Role: fields.Role, Content: fields.Content.text, Raw: raw.Clone()}
	return nil
}

// below moves an error about a value into the document that holds the value at the pointer at.
func below(at jsontext.Pointer, err error) error {
	serr, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return err
	}
	if m, ok := errors.AsType[*mismatch](err); ok {
		return &mismatch{at: at + m.at, want: m.want, got: m.got}
	}
	got := kindName(serr.JSONKind)
	if len(serr.JSONValue) > 0 {
		got = show(serr.JSONValue)
	}
	return &mismatch{at: at + serr.JSONPointer, want: typeName(serr.GoType), got: got}
}

// content is the content of a message: a string, or a list of text parts.
type content struct{ text *string }

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (c *content) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case 'n':
		return dec.SkipValue()
	case '"':
		c.text = new(string)
		return json.UnmarshalDecode(dec, c.text)
	case '[':
		var parts []part
		if err := json.UnmarshalDecode(dec, &parts); err != nil {
			return err
		}
		texts := make([]string, len(parts))
		for i, p := range parts {
			texts[i] = p.text
		}
		c.text = new(strings.Join(texts, "\n"))
		return nil
	}
	return wantedNext("a string or a list of text parts", dec)
}

// part is one part of a message's content. Only text is read.
type part struct{ text string }

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (p *part) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '"' {
		return json.UnmarshalDecode(dec, &p.text)
	}
	if dec.PeekKind() != '{' {
		return wantedNext(`an object such as {"type": "text", "text": "…"}`, dec)
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	at := dec.StackPointer()
	var fields struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return below(at, err)
	}
	switch {
	case fields.Type != "text" && fields.Type != "":
		return &mismatch{at: at + "/type", want: `"text", all that this server reads`, got: `"` + fields.Type + `"`}
	case fields.Text == nil:
		return &mismatch{at: at + "/text", want: "a string", got: "none"}
	}
	p.text = *fields.Text
	return nil
}
