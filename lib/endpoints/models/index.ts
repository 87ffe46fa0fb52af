export { type ModelRoutesOptions, modelRoutes } from './models.ts'
