functions {
real foo_log(real y, real mu) {
return normal_log(y, mu, 1) + student_t_log(y, 3, 0, 1);
}
 void bar_lp(real x) {
increment_log_prob(-x * x / 2);
}
 vector[] split(vector x, int[] n) {
vector[2] out[2];
out[1] <- x[1:2];
out[2] <- x[1:2];
return out;
}
}
parameters {
real y;
real m;
}
model {
y ~ foo(m);
bar_lp(m);
}
