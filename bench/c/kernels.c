// The element-wise and recurrent workloads as one would write them in C by hand. Compiled twice: with -O3 -march=native, and
// also with -ffast-math, which lets the compiler use its vector functions.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void ew_forward(int64_t n, const float* restrict x, float* restrict y) {
  for (int64_t i = 0; i < n; ++i) y[i] = tanhf(expf(-x[i] * x[i]) * x[i] + 1.0f);
}

void ew_gradient(int64_t n, const float* restrict x, float* restrict dx, float* loss) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    float e = expf(-x[i] * x[i]), y = tanhf(e * x[i] + 1.0f);
    sum += y;
    dx[i] = (1.0f - y * y) * e * (1.0f - 2.0f * x[i] * x[i]);
  }
  *loss = (float)sum;
}

static inline void slope(const double* p, double s, double r, double b, double* k) {
  k[0] = s * (p[1] - p[0]);
  k[1] = p[0] * (r - p[2]) - p[1];
  k[2] = p[0] * p[1] - b * p[2];
}

static inline void stages(const double* p, double s, double r, double b, double dt, double k[4][3], double q[3][3]) {
  slope(p, s, r, b, k[0]);
  for (int i = 0; i < 3; ++i) q[0][i] = p[i] + 0.5 * dt * k[0][i];
  slope(q[0], s, r, b, k[1]);
  for (int i = 0; i < 3; ++i) q[1][i] = p[i] + 0.5 * dt * k[1][i];
  slope(q[1], s, r, b, k[2]);
  for (int i = 0; i < 3; ++i) q[2][i] = p[i] + dt * k[2][i];
  slope(q[2], s, r, b, k[3]);
}

void ode_forward(const double* first, double s, double r, double b, double dt, int64_t steps, double* p) {
  memcpy(p, first, 3 * sizeof *p);
  double k[4][3], q[3][3];
  for (int64_t n = 0; n < steps; ++n) {
    stages(p, s, r, b, dt, k, q);
    for (int i = 0; i < 3; ++i) p[i] += dt / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
  }
}

// The adjoint of `slope`: adds to the adjoints of the state and of the parameters.
static inline void back(const double* p, double s, double r, double b, const double* g, double* dp, double* par) {
  dp[0] += -s * g[0] + (r - p[2]) * g[1] + p[1] * g[2];
  dp[1] += s * g[0] - g[1] + p[0] * g[2];
  dp[2] += -p[0] * g[1] - b * g[2];
  par[0] += (p[1] - p[0]) * g[0];
  par[1] += p[0] * g[1];
  par[2] -= p[2] * g[2];
}

// loss, dfirst (3), then the derivatives by the three parameters.
void ode_gradient(const double* first, double s, double r, double b, double dt, int64_t steps, double* out) {
  double(*all)[3] = malloc((size_t)(steps + 1) * sizeof *all);
  memcpy(all[0], first, sizeof *all);
  double k[4][3], q[3][3];
  for (int64_t n = 0; n < steps; ++n) {
    stages(all[n], s, r, b, dt, k, q);
    for (int i = 0; i < 3; ++i) all[n + 1][i] = all[n][i] + dt / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
  }
  out[0] = all[steps][0] + all[steps][1] + all[steps][2];
  double g[3] = {1, 1, 1}, par[3] = {0};
  for (int64_t n = steps - 1; n >= 0; --n) {
    stages(all[n], s, r, b, dt, k, q);
    double d[4][3], dq[3], dp[3];
    for (int i = 0; i < 3; ++i) {
      dp[i] = g[i];
      d[0][i] = d[3][i] = dt / 6 * g[i];
      d[1][i] = d[2][i] = dt / 3 * g[i];
    }
    static const double weight[3] = {0.5, 0.5, 1.0};
    for (int j = 3; j >= 1; --j) {
      dq[0] = dq[1] = dq[2] = 0;
      back(q[j - 1], s, r, b, d[j], dq, par);
      for (int i = 0; i < 3; ++i) {
        dp[i] += dq[i];
        d[j - 1][i] += weight[j - 1] * dt * dq[i];
      }
    }
    back(all[n], s, r, b, d[0], dp, par);
    memcpy(g, dp, sizeof g);
  }
  memcpy(out + 1, g, sizeof g);
  memcpy(out + 4, par, sizeof par);
  free(all);
}

static void heat_step(int64_t n, int64_t m, const float* restrict a, float* restrict b) {
  for (int64_t i = 1; i < n - 1; ++i) {
    const float* r = a + i * m;
    for (int64_t j = 1; j < m - 1; ++j) {
      b[i * m + j] = r[j] + 0.2f * (r[j - m] + r[j + m] + r[j - 1] + r[j + 1] - 4.0f * r[j]);
    }
  }
}

void heat_forward(int64_t n, int64_t m, const float* first, int64_t steps, float* out) {
  float* other = malloc((size_t)(n * m) * sizeof *other);
  memcpy(out, first, (size_t)(n * m) * sizeof *out);
  memcpy(other, first, (size_t)(n * m) * sizeof *out);
  float *from = out, *to = other;
  for (int64_t s = 0; s < steps; ++s) {
    heat_step(n, m, from, to);
    float* t = from;
    from = to;
    to = t;
  }
  if (from != out) memcpy(out, from, (size_t)(n * m) * sizeof *out);
  free(other);
}

// What flows into a cell from the inner cells that read it, anywhere on the plate.
static float heat_back(int64_t n, int64_t m, const float* g, int64_t i, int64_t j) {
  int row = i > 0 && i < n - 1, col = j > 0 && j < m - 1;
  float here = g[i * m + j], near = 0;
  if (i > 1 && col) near += g[(i - 1) * m + j];
  if (i < n - 2 && col) near += g[(i + 1) * m + j];
  if (j > 1 && row) near += g[i * m + j - 1];
  if (j < m - 2 && row) near += g[i * m + j + 1];
  return (row && col ? here - 0.8f * here : here) + 0.2f * near;
}

static void heat_back_step(int64_t n, int64_t m, const float* restrict g, float* restrict out) {
  for (int64_t i = 0; i < n; ++i) {
    int inner = i > 1 && i < n - 2;
    for (int64_t j = 0; j < (inner ? 2 : m); ++j) out[i * m + j] = heat_back(n, m, g, i, j);
    if (!inner) continue;
    const float* r = g + i * m;
    for (int64_t j = 2; j < m - 2; ++j) {
      out[i * m + j] = r[j] + 0.2f * (r[j - m] + r[j + m] + r[j - 1] + r[j + 1] - 4.0f * r[j]);
    }
    for (int64_t j = m - 2; j < m; ++j) out[i * m + j] = heat_back(n, m, g, i, j);
  }
}

// The steps are linear, so the backward run needs no states. The plate has at least four rows and columns.
void heat_gradient(int64_t n, int64_t m, const float* first, const float* w, int64_t steps, float* loss, float* g) {
  size_t size = (size_t)(n * m) * sizeof *g;
  float* other = malloc(size);
  heat_forward(n, m, first, steps, other);
  double sum = 0;
  for (int64_t i = 0; i < n * m; ++i) sum += w[i] * other[i];
  *loss = (float)sum;
  memcpy(g, w, size);
  float *from = g, *to = other;
  for (int64_t s = 0; s < steps; ++s) {
    heat_back_step(n, m, from, to);
    float* t = from;
    from = to;
    to = t;
  }
  if (from != g) memcpy(g, from, size);
  free(other);
}

double kalman_forward(int64_t n, const double* seen, const double* F, const double* Q, double r) {
  double x[3] = {0}, P[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, loss = 0;
  for (int64_t t = 0; t < n; ++t) {
    double e = seen[t] - x[0], S = P[0][0] + r, K[3], y[3], M[3][3], FM[3][3];
    loss += 0.5 * log(S) + 0.5 * e * e / S;
    for (int i = 0; i < 3; ++i) K[i] = P[i][0] / S;
    for (int i = 0; i < 3; ++i) y[i] = x[i] + K[i] * e;
    for (int i = 0; i < 3; ++i) x[i] = F[3 * i] * y[0] + F[3 * i + 1] * y[1] + F[3 * i + 2] * y[2];
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) M[i][j] = P[i][j] - K[i] * P[0][j];
    }
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) FM[i][j] = F[3 * i] * M[0][j] + F[3 * i + 1] * M[1][j] + F[3 * i + 2] * M[2][j];
    }
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        P[i][j] = FM[i][0] * F[3 * j] + FM[i][1] * F[3 * j + 1] + FM[i][2] * F[3 * j + 2] + Q[3 * i + j];
      }
    }
  }
  return loss;
}

// loss, dF (9), dQ (9), dr.
void kalman_gradient(int64_t n, const double* seen, const double* F, const double* Q, double r, double* out) {
  typedef struct {
    double x[3], P[3][3];
  } State;
  State* all = malloc((size_t)(n + 1) * sizeof *all);
  memset(all, 0, sizeof *all);
  for (int i = 0; i < 3; ++i) all[0].P[i][i] = 1;
  double loss = 0;
  for (int64_t t = 0; t < n; ++t) {
    const State* a = &all[t];
    State* b = &all[t + 1];
    double e = seen[t] - a->x[0], S = a->P[0][0] + r, y[3], M[3][3], FM[3][3];
    loss += 0.5 * log(S) + 0.5 * e * e / S;
    for (int i = 0; i < 3; ++i) y[i] = a->x[i] + a->P[i][0] / S * e;
    for (int i = 0; i < 3; ++i) b->x[i] = F[3 * i] * y[0] + F[3 * i + 1] * y[1] + F[3 * i + 2] * y[2];
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) M[i][j] = a->P[i][j] - a->P[i][0] / S * a->P[0][j];
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) FM[i][j] = F[3 * i] * M[0][j] + F[3 * i + 1] * M[1][j] + F[3 * i + 2] * M[2][j];
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j)
        b->P[i][j] = FM[i][0] * F[3 * j] + FM[i][1] * F[3 * j + 1] + FM[i][2] * F[3 * j + 2] + Q[3 * i + j];
  }
  double gx[3] = {0}, gP[3][3] = {{0}}, dF[9] = {0}, dQ[9] = {0}, dr = 0;
  for (int64_t t = n - 1; t >= 0; --t) {
    const State* a = &all[t];
    double e = seen[t] - a->x[0], S = a->P[0][0] + r, K[3], y[3], M[3][3], FM[3][3];
    for (int i = 0; i < 3; ++i) K[i] = a->P[i][0] / S;
    for (int i = 0; i < 3; ++i) y[i] = a->x[i] + K[i] * e;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) M[i][j] = a->P[i][j] - K[i] * a->P[0][j];
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) FM[i][j] = F[3 * i] * M[0][j] + F[3 * i + 1] * M[1][j] + F[3 * i + 2] * M[2][j];
    double gFM[3][3], gM[3][3], gy[3], gK[3] = {0}, nx[3], nP[3][3];
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) dQ[3 * i + j] += gP[i][j];
    for (int i = 0; i < 3; ++i)  // P = FM · Fᵀ
      for (int k = 0; k < 3; ++k) gFM[i][k] = gP[i][0] * F[k] + gP[i][1] * F[3 + k] + gP[i][2] * F[6 + k];
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 3; ++k) dF[3 * j + k] += gP[0][j] * FM[0][k] + gP[1][j] * FM[1][k] + gP[2][j] * FM[2][k];
    for (int k = 0; k < 3; ++k)  // FM = F · M
      for (int j = 0; j < 3; ++j) gM[k][j] = F[k] * gFM[0][j] + F[3 + k] * gFM[1][j] + F[6 + k] * gFM[2][j];
    for (int i = 0; i < 3; ++i)
      for (int k = 0; k < 3; ++k) dF[3 * i + k] += gFM[i][0] * M[k][0] + gFM[i][1] * M[k][1] + gFM[i][2] * M[k][2];
    for (int k = 0; k < 3; ++k) gy[k] = F[k] * gx[0] + F[3 + k] * gx[1] + F[6 + k] * gx[2];
    for (int i = 0; i < 3; ++i)
      for (int k = 0; k < 3; ++k) dF[3 * i + k] += gx[i] * y[k];
    memcpy(nP, gM, sizeof nP);  // M = P - K · P[0]
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) {
        gK[i] -= gM[i][j] * a->P[0][j];
        nP[0][j] -= gM[i][j] * K[i];
      }
    double ge = e / S, gS = 0.5 / S - 0.5 * e * e / (S * S);
    for (int i = 0; i < 3; ++i) {
      nx[i] = gy[i];
      gK[i] += gy[i] * e;
      ge += gy[i] * K[i];
    }
    for (int i = 0; i < 3; ++i) {
      nP[i][0] += gK[i] / S;
      gS -= gK[i] * K[i] / S;
    }
    nx[0] -= ge;
    nP[0][0] += gS;
    dr += gS;
    memcpy(gx, nx, sizeof gx);
    memcpy(gP, nP, sizeof gP);
  }
  out[0] = loss;
  memcpy(out + 1, dF, sizeof dF);
  memcpy(out + 10, dQ, sizeof dQ);
  out[19] = dr;
  free(all);
}

static float cell(float cost, float a, float b, float c) {
  float low = fminf(a, fminf(b, c));
  return cost + low - logf(expf(low - a) + expf(low - b) + expf(low - c));
}

static void table(int64_t n, int64_t m, const float* cost, float* R) {
  int64_t w = m + 1;
  for (int64_t j = 0; j <= m; ++j) R[j] = 1e10f;
  for (int64_t i = 0; i <= n; ++i) R[i * w] = 1e10f;
  R[0] = 0;
  for (int64_t i = 1; i <= n; ++i)
    for (int64_t j = 1; j <= m; ++j)
      R[i * w + j] = cell(cost[(i - 1) * m + j - 1], R[(i - 1) * w + j - 1], R[(i - 1) * w + j], R[i * w + j - 1]);
}

float dp_forward(int64_t n, int64_t m, const float* cost) {
  float* R = malloc((size_t)((n + 1) * (m + 1)) * sizeof *R);
  table(n, m, cost, R);
  float out = R[n * (m + 1) + m];
  free(R);
  return out;
}

void dp_gradient(int64_t n, int64_t m, const float* cost, float* loss, float* g) {
  int64_t w = m + 1;
  float* R = malloc((size_t)((n + 1) * w) * sizeof *R);
  float* G = calloc((size_t)((n + 1) * w), sizeof *G);
  table(n, m, cost, R);
  *loss = R[n * w + m];
  G[n * w + m] = 1;
  for (int64_t i = n; i >= 1; --i) {
    for (int64_t j = m; j >= 1; --j) {
      float here = G[i * w + j], a = R[(i - 1) * w + j - 1], b = R[(i - 1) * w + j], c = R[i * w + j - 1];
      float low = fminf(a, fminf(b, c));
      float ea = expf(low - a), eb = expf(low - b), ec = expf(low - c), share = here / (ea + eb + ec);
      g[(i - 1) * m + j - 1] = here;
      G[(i - 1) * w + j - 1] += share * ea;
      G[(i - 1) * w + j] += share * eb;
      G[i * w + j - 1] += share * ec;
    }
  }
  free(R);
  free(G);
}
