export { type CatalogSource, catalogFrom } from './catalog-source.ts'
