//! The chart of a plan: the harvests per day for each freshness.

use super::planned_harvests::PlannedHarvests;
use oaimend_rules::schedule::{FreshnessTarget, Plan};
use plotters::prelude::*;
use std::error::Error;

const SIZE_PIXELS: (u32, u32) = (800, 500);
/// The values of the horizontal axis: from 0.5 to 0.99.
const FRESHNESS_STEPS: u32 = 99;
const FRESHNESS_STEP: f64 = 0.005;
const DAY_SECS: f64 = 86_400.0;

/// The cost of this plan and that of equal intervals, as (freshness, harvests per day).
type Curves = [Vec<(f64, f64)>; 2];

/// Draws the cost of plans against their freshness, as SVG.
///
/// # Errors
///
/// A plan is not possible, or the drawing failed.
pub fn plan_chart(planned: &PlannedHarvests) -> Result<String, Box<dyn Error>> {
    let curves = curves(planned)?;
    let points = || curves.iter().flatten();
    let (mut least, mut most) = (1.0_f64, 0.0_f64);
    for (freshness, harvests) in points() {
        (least, most) = (least.min(*freshness), most.max(*harvests));
    }
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE_PIXELS).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption("Cost of the harvests", ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(70)
            .build_cartesian_2d(least..1.0, 0.0..most * 1.05)?;
        chart
            .configure_mesh()
            .x_desc("freshness (share of records that are up to date)")
            .y_desc("harvests per day")
            .draw()?;
        for (curve, name, color) in
            [(&curves[0], "this schedule", BLUE), (&curves[1], "equal intervals", RED)]
        {
            let line = LineSeries::new(curve.iter().copied(), color.stroke_width(2));
            let legend = move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color.stroke_width(2));
            chart.draw_series(line)?.label(name).legend(legend);
        }
        let here = [(planned.plan.freshness(), harvests_per_day(&planned.plan))];
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

fn curves(planned: &PlannedHarvests) -> Result<Curves, Box<dyn Error>> {
    let mut curves = Curves::default();
    for step in 0..FRESHNESS_STEPS {
        let Some(target) = FreshnessTarget::new(0.5 + f64::from(step) * FRESHNESS_STEP) else { continue };
        let (plan, uniform) = planned.with_freshness(target)?;
        for (curve, plan) in curves.iter_mut().zip([plan, uniform]) {
            curve.push((plan.freshness(), harvests_per_day(&plan)));
        }
    }
    Ok(curves)
}

fn harvests_per_day(plan: &Plan) -> f64 {
    plan.harvests_per_sec() * DAY_SECS
}
