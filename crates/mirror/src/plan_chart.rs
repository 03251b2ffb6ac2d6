//! Charts of plans: the cost for each freshness.

use super::planned_harvests::PlannedHarvests;
use oaimend_rules::schedule::{FreshnessTarget, Plan, Policy, Workload};
use plotters::prelude::*;
use std::error::Error;

const SIZE_PIXELS: (u32, u32) = (800, 500);
/// The values of the horizontal axis: from 0.5 to 0.99.
const FRESHNESS_STEPS: u32 = 99;
const FRESHNESS_STEP: f64 = 0.005;
const DAY_SECS: f64 = 86_400.0;

/// A line of a chart.
struct Curve {
    name: &'static str,
    color: RGBColor,
    /// Freshness and cost.
    points: Vec<(f64, f64)>,
}

/// Draws the cost of plans against their freshness, as SVG.
///
/// # Errors
///
/// A plan is not possible, or the drawing failed.
pub fn plan_chart(planned: &PlannedHarvests) -> Result<String, Box<dyn Error>> {
    let (mut plans, mut uniform) = (Vec::new(), Vec::new());
    for target in targets() {
        let (plan, equal) = planned.with_freshness(target)?;
        for (points, plan) in [(&mut plans, plan), (&mut uniform, equal)] {
            points.push((plan.freshness(), harvests_per_day(&plan)));
        }
    }
    let curves = [
        Curve { name: "this schedule", color: BLUE, points: plans },
        Curve { name: "equal intervals", color: RED, points: uniform },
    ];
    let here = (planned.plan.freshness(), harvests_per_day(&planned.plan));
    draw(["Cost of the harvests", "harvests per day"], &curves, Some(here))
}

/// Draws the cost of policies against their wanted freshness, relative to OAP, as SVG.
///
/// # Errors
///
/// The drawing failed.
pub fn policies_chart(workload: &Workload, policies: &[Policy]) -> Result<String, Box<dyn Error>> {
    let curves: Vec<Curve> = policies
        .iter()
        .map(|policy| {
            let ratio = |target| {
                let optimal = workload.cost(Policy::Oap, target).per_day;
                let cost = workload.cost(*policy, target).per_day;
                (target.share(), if optimal > 0.0 { cost / optimal } else { 1.0 })
            };
            Curve { name: policy.name(), color: color(*policy), points: targets().map(ratio).collect() }
        })
        .collect();
    draw(["Cost of policies", "cost, relative to OAP"], &curves, None)
}

const fn color(policy: Policy) -> RGBColor {
    match policy {
        Policy::Oap => BLUE,
        Policy::Uap => RED,
        Policy::Unap => MAGENTA,
        Policy::Ioap => BLACK,
    }
}

fn targets() -> impl Iterator<Item = FreshnessTarget> {
    (0..FRESHNESS_STEPS).filter_map(|step| FreshnessTarget::new(0.5 + f64::from(step) * FRESHNESS_STEP))
}

fn harvests_per_day(plan: &Plan) -> f64 {
    plan.harvests_per_sec() * DAY_SECS
}

/// Draws a chart with a caption and the title of its vertical axis. A point marks the present.
fn draw(
    [caption, cost]: [&str; 2],
    curves: &[Curve],
    here: Option<(f64, f64)>,
) -> Result<String, Box<dyn Error>> {
    let (mut least, mut most) = (1.0_f64, 0.0_f64);
    for (freshness, cost) in curves.iter().flat_map(|curve| &curve.points) {
        (least, most) = (least.min(*freshness), most.max(*cost));
    }
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE_PIXELS).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(caption, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(70)
            .build_cartesian_2d(least..1.0, 0.0..most * 1.05)?;
        chart
            .configure_mesh()
            .x_desc("freshness (share of records that are up to date)")
            .y_desc(cost)
            .draw()?;
        for &Curve { name, color, ref points } in curves {
            let line = LineSeries::new(points.iter().copied(), color.stroke_width(2));
            let legend = move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color.stroke_width(2));
            chart.draw_series(line)?.label(name).legend(legend);
        }
        chart.draw_series(PointSeries::of_element(here, 5, BLUE.filled(), &|place, size, style| {
            Circle::new(place, size, style)
        }))?;
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE)
            .border_style(BLACK)
            .draw()?;
        area.present()?;
    }
    Ok(svg)
}
