export { BodyCollector } from './body-collector.ts'
export { SharedBytes } from './shared-bytes.ts'
