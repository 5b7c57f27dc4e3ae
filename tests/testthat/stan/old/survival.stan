data {
int N;
int M;
real<lower=0> t[N];
real<lower=0> c[M];
}
parameters {
real<lower=0> a;
real<lower=0> s;
}
model {
t ~ weibull(a, s);
increment_log_prob(weibull_ccdf_log(c, a, s));
a ~ cauchy(0, 2.5) T[0, ];
if (a > 3) increment_log_prob(-1);
else increment_log_prob(multiply_log(2, a));
}
