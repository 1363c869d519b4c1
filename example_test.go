package quire_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"

	"github.com/quire-ai/quire"
)

// Load a model and print what it says, token by token. Model is a path here; "smollm2:135m" would be fetched.
func Example() {
	ctx := context.Background()
	e, err := quire.Open(ctx, quire.Options{Model: tinyModel, KVCacheTokens: 1024})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	for tok, err := range e.Generate(ctx, quire.Request{Prompt: "A quire", MaxTokens: 16}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(tok.Text)
		if tok.Finish != nil {
			fmt.Printf("\n%s after %d tokens\n", tok.Finish.Reason, tok.Finish.OutputTokens)
		}
	}
	// Output:
	//  is a gathering of pages.
	// stop after 7 tokens
}

// Many goroutines may ask at once: the engine computes them together, and each gets the text it would get alone.
func ExampleEngine_Generate() {
	ctx := context.Background()
	e, err := quire.Open(ctx, quire.Options{Model: tinyModel, KVCacheTokens: 64})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	answers := make([]string, 30)
	var clients sync.WaitGroup
	for i := range answers {
		clients.Go(func() {
			for tok, err := range e.Generate(ctx, quire.Request{Prompt: "A quire is", MaxTokens: 3}) {
				if err != nil {
					log.Print(err)
					return
				}
				answers[i] += tok.Text
			}
		})
	}
	clients.Wait()
	same := 0
	for _, a := range answers {
		if a == " a gathering of" {
			same++
		}
	}
	fmt.Println(same, "of", len(answers), "say:"+answers[0])
	// Output: 30 of 30 say: a gathering of
}

// Leaving the loop aborts the request; nothing more is computed for it.
func ExampleEngine_Generate_stop() {
	ctx := context.Background()
	e, err := quire.Open(ctx, quire.Options{Model: tinyModel, KVCacheTokens: 1024})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	for tok, err := range e.Generate(ctx, quire.Request{Prompt: "A quire", Stop: []string{" of"}}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(tok.Text)
		if tok.Finish != nil {
			fmt.Printf("|%s at %q", tok.Finish.Reason, tok.Finish.StopText)
		}
	}
	fmt.Println()
	for tok, err := range e.Generate(ctx, quire.Request{Prompt: "A quire"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(tok.Text)
		break
	}
	// Output:
	//  is a gathering|stop at " of"
	//  is
}

func ExampleEngine_Chat() {
	ctx := context.Background()
	e, err := quire.Open(ctx, quire.Options{Model: tinyModel, KVCacheTokens: 1024})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	messages := []quire.Message{{Role: "user", Content: "A quire is"}}
	for tok, err := range e.Chat(ctx, messages, quire.Request{MaxTokens: 32}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(tok.Text)
	}
	// Output: A quire is a gathering of pages.
}

// A request that can never fit is refused at once, with the numbers.
func ExampleTooLongError() {
	ctx := context.Background()
	e, err := quire.Open(ctx, quire.Options{Model: tinyModel, KVCacheTokens: 64})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	for _, err := range e.Generate(ctx, quire.Request{Tokens: make([]int32, 100)}) {
		if tooLong, ok := errors.AsType[*quire.TooLongError](err); ok {
			fmt.Println(err)
			fmt.Println(tooLong.Prompt-tooLong.Limit, "tokens too many")
		}
	}
	// Output:
	// prompt of 100 tokens exceeds the KV cache of 64
	// 36 tokens too many
}
