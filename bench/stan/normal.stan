parameters {
  vector[10] x;
}
model {
  x ~ normal(3, 1);
}
