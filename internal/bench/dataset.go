package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
)

// Shape says what a dataset is made of.
type Shape struct {
	Seed         uint64
	Prompts      int
	InputTokens  int // length of a prompt, shared beginning included
	PrefixTokens int // length of the beginning that all prompts share
	OutputTokens int
}

// Random makes prompts of random words, one for each token. The words are so common that they, with the space before
// them, are one token in the vocabularies in use, so that words count as tokens: exactly, up to a BOS token, for those of
// SmolLM2, Llama 3, Qwen and Gemma. The server's own count is what the results show.
func (s Shape) Random() []Item {
	r := rand.New(rand.NewPCG(s.Seed, 1))
	words := strings.Fields(commonWords)
	prefix := randomWords(r, words, min(s.PrefixTokens, s.InputTokens))
	items := make([]Item, s.Prompts)
	for i := range items {
		own := randomWords(r, words, s.InputTokens-len(prefix))
		items[i] = Item{Prompt: strings.Join(append(prefix[:len(prefix):len(prefix)], own...), " "), OutputTokens: s.OutputTokens}
	}
	return items
}

func randomWords(r *rand.Rand, words []string, n int) []string {
	text := make([]string, n)
	for i := range text {
		text[i] = words[r.IntN(len(words))]
	}
	return text
}

// commonWords are one token each with a space in front, and without, in the vocabularies of dataset_test.go.
const commonWords = `the of and to in is that for it as was with be by on not he his but at are this have from or had an
they which one you were her all she there would their we him been has when who will more no if out so said what up its
about into than them can only other new some could time these two may then do first any my now such like our over man me
even most made after also did many before must through back years where much your way well down should because each just
those people how too little state good very make world still own see men work long get here between both life being
under never day same another know while last might us great old year off come since against go right used take
three`

// Sonnet makes prompts of whole lines of a text: an instruction and the first lines, which all share, then lines drawn at
// random. tokens counts the tokens of a text, or estimates them.
func (s Shape) Sonnet(lines []string, tokens func(string) float64) []Item {
	r := rand.New(rand.NewPCG(s.Seed, 2))
	const instruction = "Pick as many lines as you can from these poem lines:\n"
	shared, used := instruction, tokens(instruction)
	for i := 0; i < len(lines) && used < float64(s.PrefixTokens); i++ {
		shared += lines[i] + "\n"
		used += tokens(lines[i] + "\n")
	}
	items := make([]Item, s.Prompts)
	for i := range items {
		prompt, length := shared, used
		for {
			line := lines[r.IntN(len(lines))] + "\n"
			if length += tokens(line); length > float64(s.InputTokens) {
				break
			}
			prompt += line
		}
		items[i] = Item{Prompt: prompt, OutputTokens: s.OutputTokens}
	}
	return items
}

// ReadLines reads a text for Sonnet; empty lines are left out.
func ReadLines(r io.Reader) ([]string, error) {
	var lines []string
	scan := bufio.NewScanner(r)
	for scan.Scan() {
		if line := strings.TrimSpace(scan.Text()); line != "" {
			lines = append(lines, line)
		}
	}
	if scan.Err() == nil && len(lines) == 0 {
		return nil, fmt.Errorf("no lines of text")
	}
	return lines, scan.Err()
}

// ReadCustom reads a dataset of one JSON object a line: {"prompt": "…", "output_tokens": 100}. Where output_tokens is
// missing it is outputTokens. Of a longer file the first n prompts are taken; a shorter one is repeated.
func ReadCustom(r io.Reader, n, outputTokens int) ([]Item, error) {
	const longest = 16 << 20 // bytes of a line
	var items []Item
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, longest)
	for number := 1; scan.Scan() && len(items) < n; number++ {
		if strings.TrimSpace(scan.Text()) == "" {
			continue
		}
		var line struct {
			Prompt       *string `json:"prompt"`
			OutputTokens int     `json:"output_tokens"`
		}
		if err := json.Unmarshal(scan.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if line.Prompt == nil {
			return nil, fmt.Errorf(`line %d: no "prompt"`, number)
		}
		if line.OutputTokens <= 0 {
			line.OutputTokens = outputTokens
		}
		items = append(items, Item{Prompt: *line.Prompt, OutputTokens: line.OutputTokens})
	}
	if scan.Err() != nil {
		return nil, scan.Err()
	}
	if len(items) == 0 {
		return nil, fmt.Errorf("no prompts")
	}
	for i := 0; len(items) < n; i++ {
		items = append(items, items[i])
	}
	return items, nil
}
