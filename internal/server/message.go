package server

import (
	"github.com/quire-ai/quire/internal/chat"
	"github.com/quire-ai/quire/internal/openai"
)

// messageValue is a message as templates see it: every key that was sent, in order, with the content in the form that the
// template takes.
func (s *Server) messageValue(m *openai.Message) (chat.Value, error) {
	value, err := chat.FromJSON(m.Raw)
	sent, ok := value.(*chat.Dict)
	if err != nil || !ok {
		return nil, badValue("messages", "messages: %v", err)
	}
	out := &chat.Dict{}
	for key, value := range sent.All {
		name, _ := key.(chat.Str)
		switch {
		case name == "content" && m.Content != nil && !s.parts:
			value = chat.Str(*m.Content)
		case name == "content" && m.Content != nil:
			value = textParts(value)
		case name == "role" && m.Role == "developer": // OpenAI's newer word, which templates do not know
			value = chat.Str("system")
		case name == "reasoning_content":
			name = "reasoning"
			out.Set("reasoning_content", value) // by which most published templates still ask for it
		case name == "reasoning":
			out.Set("reasoning_content", value)
		case name == "tool_calls":
			parseToolCalls(value)
		}
		out.Set(string(name), value)
	}
	return out, nil
}

// textParts is a content as a list of parts.
func textParts(content chat.Value) chat.Value {
	part := func(text chat.Value) chat.Value {
		d := &chat.Dict{}
		d.Set("type", chat.Str("text"))
		d.Set("text", text)
		return d
	}
	list, ok := content.(*chat.List)
	if !ok {
		return &chat.List{Items: []chat.Value{part(content)}}
	}
	out := &chat.List{}
	for _, item := range list.Items {
		if text, ok := item.(chat.Str); ok {
			item = part(text)
		}
		out.Items = append(out.Items, item)
	}
	return out
}

// parseToolCalls turns the arguments of calls, which the API sends as text, into the objects that templates expect.
func parseToolCalls(calls chat.Value) {
	list, ok := calls.(*chat.List)
	if !ok {
		return
	}
	for _, item := range list.Items {
		call, ok := item.(*chat.Dict)
		if !ok {
			continue
		}
		value, _ := call.Get("function")
		function, ok := value.(*chat.Dict)
		if !ok {
			continue
		}
		arguments, _ := function.Get("arguments")
		if text, ok := arguments.(chat.Str); ok {
			if parsed, err := chat.FromJSON([]byte(text)); err == nil {
				function.Set("arguments", parsed)
			}
		}
	}
}
