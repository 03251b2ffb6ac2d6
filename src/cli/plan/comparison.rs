//! The policies of Adly's paper beside each other, by its own formulas.

use std::fmt::Write as _;

use oaimend_rules::schedule::{FreshnessTarget, LeastCombinedCost, Policy, PolicyCost, UnitCosts, Workload};
use serde_json::{Value, json};

use super::super::exit::Failure;

/// The policies at one freshness.
pub(super) struct Comparison {
    pub(super) workload: Workload,
    /// Whether UNAP was planned for a mix of its own.
    pub(super) has_other_mix: bool,
    pub(super) freshness: FreshnessTarget,
}

impl Comparison {
    /// The compared policies. Without a mix of its own, UNAP is UAP.
    pub(super) fn policies(&self) -> Vec<Policy> {
        Policy::ALL.iter().copied().filter(|policy| self.has_other_mix || *policy != Policy::Unap).collect()
    }

    fn costs(&self) -> impl Iterator<Item = (Policy, PolicyCost, f64)> {
        let optimal = self.workload.cost(Policy::Oap, self.freshness).per_day;
        self.policies().into_iter().map(move |policy| {
            let cost = self.workload.cost(policy, self.freshness);
            (policy, cost, if optimal > 0.0 { cost.per_day / optimal } else { 1.0 })
        })
    }

    pub(super) fn add_text(&self, text: &mut String, unit_costs: UnitCosts) {
        let UnitCosts { harvest, update } = unit_costs;
        let _ = writeln!(
            text,
            "\nBy the formulas of Adly, with intervals without bounds, {harvest} for a harvest and {update} for an update:"
        );
        let _ = writeln!(text, "{:44}  {:>14}  {:>6}  {:>9}", "", "cost/day", "of OAP", "freshness");
        for (policy, cost, ratio) in self.costs() {
            let name = format!("{:4}  {}", policy.name(), describe(policy));
            let _ =
                writeln!(text, "{name:44}  {:>14.1}  {ratio:>6.3}  {:>9.4}", cost.per_day, cost.freshness);
        }
    }

    pub(super) fn document(&self) -> Value {
        let policies = self.costs().map(|(policy, cost, ratio)| {
            let document = json!({
                "cost_per_day": cost.per_day, "cost_ratio": ratio, "freshness": cost.freshness,
            });
            (policy.name().to_ascii_lowercase(), document)
        });
        Value::Object(policies.collect())
    }
}

const fn describe(policy: Policy) -> &'static str {
    match policy {
        Policy::Oap => "optimal intervals",
        Policy::Uap => "equal intervals",
        Policy::Unap => "equal intervals for the planned table",
        Policy::Ioap => "each repository for itself",
    }
}

/// The freshness that a cost weight chooses.
pub(super) struct CombinedCost {
    pub(super) freshness: FreshnessTarget,
    weight: f64,
    least: LeastCombinedCost,
}

impl CombinedCost {
    /// # Errors
    ///
    /// The freshness of the least cost is below all that can be wanted, or above.
    pub(super) fn new(workload: &Workload, weight: f64) -> Result<Self, Failure> {
        let least = workload.least_combined_cost(weight);
        let share = least.cost.freshness;
        let freshness = FreshnessTarget::new(share).ok_or_else(|| {
            let (place, advice) = if share < 0.5 { ("below 0.5", "raise") } else { ("of 1", "lower") };
            Failure::usage(format!(
                "with a cost weight of {weight}, a freshness {place} costs least, for which there is no plan; {advice} \
                 --cost-weight"
            ))
        })?;
        Ok(Self { freshness, weight, least })
    }

    pub(super) fn add_text(&self, text: &mut String) {
        let LeastCombinedCost { combined_per_day, cost } = self.least;
        let _ = writeln!(
            text,
            "\nWith a cost weight of {}, a freshness of {:.4} costs least by the formulas of Adly: {combined_per_day:.1} \
             a day, {:.1} of it for harvests.",
            self.weight, cost.freshness, cost.per_day
        );
    }

    pub(super) fn document(&self) -> Value {
        json!({
            "cost_weight": self.weight,
            "freshness": self.least.cost.freshness,
            "combined_per_day": self.least.combined_per_day,
            "cost_per_day": self.least.cost.per_day,
        })
    }
}
