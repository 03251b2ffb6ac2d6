//! Tests of the rules over simulated time: the mirror misses no record, and the schedule is cheap.

mod mirror_simulation;
mod schedule_costs;
