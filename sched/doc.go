// Package sched decides which tokens of which request a model computes next, over the paged KV cache of package kv.
//
// It is a pure state machine, in the manner of etcd's raft: the caller hands in events and gets Changes and Plans back.
// It has no goroutine, clock, random source or I/O; the same events give the same plans, byte for byte. Its behaviour
// follows the vLLM V1 scheduler where that is right.
//
//	s := sched.New(cfg)
//	s.Apply(sched.AddRequest{Request: r})    // refused at once if it can never fit
//	for work {
//		p := s.Schedule(now)
//		outputs := execute(p)                 // p.Requests: compute tokens [From, From+N), sample where Sample
//		if !p.Idle() {
//			changes := s.Apply(&sched.StepDone{Step: p.Step, Outputs: outputs})
//		}
//	}
//
// Between Schedule and its StepDone other events may be applied, Abort above all. Up to PipelineDepth plans may be in
// flight; they are returned in order.
//
// There is no prefill or decode phase. A request knows some tokens (its prompt and what it has generated) and has
// computed the KV of some; each step brings computed towards known. New prompts, chunks, decodes and resumed requests
// share one step under one token budget. When blocks run out, a running request is preempted: it gives back all its
// blocks and later computes prompt and outputs again, as far as they are not cached.
//
// External KV comes through a [Connector], which answers at once what it holds; the transfers themselves are begun by the
// executor and end as events that carry the [Epoch] in which they began. A completion of an old epoch changes nothing but
// the return of its blocks.
//
// # Progress
//
// Every admitted request ends. What cannot fit the empty cache is refused; a request whose next token would no longer
// fit the whole cache ends with reason length. Victims are taken in reverse order of admission (under Priority: the
// least urgent first), so the oldest running request always gets its blocks and runs to its end, and then the next. A
// preempted request comes back only when all its known tokens fit. Where upstream's order of work would wait for ever,
// a recovery pass steps in; it and the other rules by which decisions differ from vLLM's are numbered, see [Rule].
//
// # Invariants
//
// 1 to 3 are those of package kv.
//
//  4. A request is in exactly the queue that its state names.
//  5. Computed ≤ known (and tokens in flight), and its blocks cover what is computed.
//  6. The planned tokens sum to at most the budget; at most MaxNumSeqs requests run; nobody is both preempted and planned
//     by one pass.
//  7. Progress: a plan is never empty while a request could run and nothing is in flight.
//  8. Each request gets exactly one terminal answer.
package sched
