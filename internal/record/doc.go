// Package record writes down what a scheduler was given and what it decided, and replays that.
//
// The scheduler is pure: the same events give the same plans. So the events are a complete record of a run, and its
// plans in short form are the proof: Replay feeds the events to a fresh scheduler and compares plan by plan. An
// operator's odd afternoon becomes a file, and the file a test.
//
// A record is one JSON object a line. The first holds the version and the configuration. Each further line holds one
// member: an event's name with the event (field names are those of package sched), "match" or "hold" with a connector's
// answer, "schedule" with the time handed in, or "plan" with the decision that it led to. Prompts are in the record as
// token ids: treat it like the requests themselves.
package record
