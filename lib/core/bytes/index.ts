export { BodyCollector } from './body-collector.ts'
