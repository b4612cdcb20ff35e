// RUN: %stepwell-opt %s --verify-diagnostics --split-input-file

// Each case breaks one rule of levels, or of where they stand.

// kernel_func_c10
// expected-error@+1 {{kernel.schedule must be #kernel.schedule<[...]>, got 3 : i64}}
kernel.func @k(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {kernel.schedule = 3} {
  kernel.return %y : tensor<4xf32>
}

// -----

// kernel_schedule_c1
// expected-error@+1 {{'for d0': a step is of 1 to 2147483648 iterations}}
"test.op"() {s = #kernel.schedule<[for d0 by 0]>} : () -> ()

// -----

// kernel_schedule_c1
// expected-error@+1 {{'for d0 by 8' of op 2 must be less than the 4 iterations around it}}
"test.op"() {s = #kernel.schedule<[for d0 by 4], op 2 [for d0 by 8]>} : () -> ()

// -----

// kernel_schedule_c1
// expected-error@+1 {{'unroll d0 by 3' must divide the 8 iterations around it}}
"test.op"() {s = #kernel.schedule<[for d0 by 8, unroll d0 by 3]>} : () -> ()

// -----

// kernel_schedule_c2
// expected-error@+1 {{'lane d0' is of no group: begin with 'group'}}
"test.op"() {s = #kernel.schedule<[parallel d0 by 8, lane d0]>} : () -> ()

// -----

// kernel_schedule_c2
// expected-error@+1 {{'group d1' must come before levels that are not of groups}}
"test.op"() {s = #kernel.schedule<[group d0 by 8, lane d0, group d1]>} : () -> ()

// -----

// kernel_schedule_c2
// expected-error@+1 {{'parallel d1' must come before levels that are not parallel}}
"test.op"() {s = #kernel.schedule<[group d0 by 8, parallel d1]>} : () -> ()

// -----

// kernel_schedule_c2
// expected-error@+1 {{'unroll d1' is inside of the vectors of d1}}
"test.op"() {s = #kernel.schedule<[vector d1 by 8, unroll d1]>} : () -> ()

// -----

// kernel_schedule_c2
// expected-error@+1 {{'parallel d0' must come before levels that are not parallel}}
"test.op"() {s = #kernel.schedule<[for d1, parallel d0]>} : () -> ()

// -----

// kernel_schedule_c3
// expected-error@+1 {{'for d0 into 4': only a parallel or group level without 'by' has parts}}
"test.op"() {s = #kernel.schedule<[for d0 into 4]>} : () -> ()

// -----

// kernel_schedule_c4
// expected-error@+1 {{'for d0 by 4' has one step: leave it out}}
"test.op"() {s = #kernel.schedule<[parallel d0 by 4, for d0 by 4]>} : () -> ()

// -----

// kernel_schedule_c6
// expected-error@+1 {{'for d0 mask': only parallel and for levels of several iterations have a tail}}
"test.op"() {s = #kernel.schedule<[for d0 by 4, for d0 mask]>} : () -> ()

// -----

// kernel_schedule_c5
// expected-error@+1 {{'vector d0 by 7': a vector has a power of two of iterations, up to 256}}
"test.op"() {s = #kernel.schedule<[vector d0 by 7]>} : () -> ()

// -----

// kernel_schedule_c5
// expected-error@+1 {{'vector d0 by 512': a vector has a power of two of iterations, up to 256}}
"test.op"() {s = #kernel.schedule<[vector d0 by 512]>} : () -> ()

// -----

// kernel_schedule_c5
// expected-error@+1 {{'unroll d1 by 16': 480 iterations stand side by side, at most 256 may}}
"test.op"() {s = #kernel.schedule<[for d0 by 60, for d1 by 128, unroll d0, unroll d1 by 16, vector d1 by 16]>} : () -> ()

// -----

// expected-error@+1 {{expected a kind of level (parallel, group, lane, for, unroll, vector), got 'fro'}}
"test.op"() {s = #kernel.schedule<[fro d0]>} : () -> ()

// -----

// expected-error@+1 {{expected a loop, as d0, got 'i'}}
"test.op"() {s = #kernel.schedule<[for i]>} : () -> ()

// -----

// expected-error@+1 {{expected an action (grain, pipeline, prefetch, pack, stage, nontemporal, mirror), got 'pac'}}
"test.op"() {s = #kernel.schedule<[for d0 {pac 1}]>} : () -> ()

// -----

// expected-error@+1 {{expected what pack knows (first, double_buffered, dot, biased_dot), got 'dot5'}}
"test.op"() {s = #kernel.schedule<[for d0 {pack 1 as dot5}]>} : () -> ()

// -----

// expected-error@+1 {{there are two lists of op 1}}
"test.op"() {s = #kernel.schedule<[], op 1 [for d0], op 1 [for d0]>} : () -> ()

// -----

// expected-error@+1 {{expected 'op' and its number before a further list of levels}}
"test.op"() {s = #kernel.schedule<[for d0], [for d0]>} : () -> ()
