data {
int K;
int N;
vector[K] y[N];
}
parameters {
cholesky_factor_corr[K] L;
vector<lower=0>[K] s;
}
model {
vector[K] m;
matrix[K, K] S;
m <- rep_vector(0, K);
S <- diag_pre_multiply(s, L);
L ~ lkj_corr_cholesky(2.0);
increment_log_prob(lkj_corr_cholesky_log(L, 1.0));
s ~ cauchy(0, 2.5);
y ~ multi_normal_cholesky(m, S);
}
