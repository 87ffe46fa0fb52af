export { type ModelAnswer, type ModelRoutesOptions, modelRoutes } from './models.ts'
