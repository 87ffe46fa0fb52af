/* What only a gateway with a collector loads. */
export { MetricPushes } from './metric-pushes.ts'
export { registerTraces } from './traces.ts'
