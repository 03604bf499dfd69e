"""Temperatures on a grid, as xarray holds them: the mean over the globe, anomalies, and the trend at each place.

The program names its coordinates as the data do, so an array whose dimensions are in another order is an error instead
of a wrong number, and the labels (years, latitudes, longitudes) come out again.

    python examples/python/climate.py
"""

import numpy as np
import xarray as xr

import einlang

program = einlang.compile("""
let t2m: [f32; time, lat, lon];     // degrees Celsius
let lat_degrees: [f32; lat];
let year: [f32; time];

// A cell of a grid in degrees is smaller towards the poles.
let weight[lat] = cos(lat_degrees[lat] * PI / 180.0);
let global_mean[time] = sum[lat](weight[lat] * mean[lon](t2m[time, lat, lon])) / sum[lat](weight[lat]);

let climatology[lat, lon] = mean[time](t2m[time, lat, lon]);
let anomaly[time, lat, lon] = t2m[time, lat, lon] - climatology[lat, lon];

// Least squares at each place, in degrees per decade.
let late[time] = year[time] - mean[s](year[s]);
let trend[lat, lon] =
    10.0 * sum[time](late[time] * anomaly[time, lat, lon]) / sum[time](late[time] ** 2.0);
""")


def data(seed=0):
    """Forty years on a coarse grid. It warms by 0.2 degrees a decade at the equator and by 0.6 at the poles."""
    rng = np.random.default_rng(seed)
    time, lat, lon = np.arange(1981, 2021), np.arange(-75.0, 76.0, 15.0), np.arange(0.0, 360.0, 30.0)
    warming = 0.02 + 0.04 * np.abs(lat) / 90
    values = (27 - 40 * np.sin(np.deg2rad(lat)) ** 2 + np.outer(time - 1981, warming))[:, :, None]
    values = values + rng.normal(scale=0.3, size=(len(time), len(lat), len(lon)))
    return xr.DataArray(values.astype(np.float32), dims=("time", "lat", "lon"),
                        coords={"time": time, "lat": lat, "lon": lon}, name="t2m")


def analyse(t2m):
    """All of it as a Dataset, with the labels of `t2m`."""
    return program(t2m=t2m, lat_degrees=t2m.lat.astype(np.float32), year=t2m.time.astype(np.float32)).to_xarray()


def main():
    t2m = data()
    found = analyse(t2m)
    print(found)
    print("the globe, first and last decade:",
          f"{float(found.global_mean.sel(time=slice(1981, 1990)).mean()):.2f} °C,",
          f"{float(found.global_mean.sel(time=slice(2011, 2020)).mean()):.2f} °C")
    print("trend by latitude, in degrees per decade:")
    for lat, trend in found.trend.mean("lon").to_series().items():
        print(f"  {lat:6.1f}°  {trend:.2f}")
    # Another order of dimensions is not a wrong number.
    turned = t2m.transpose("lat", "lon", "time")
    try:
        analyse(turned)
    except einlang.DimsError as error:
        print("refused:", error)


if __name__ == "__main__":
    main()
