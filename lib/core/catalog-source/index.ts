export { aCatalog, type CatalogSource, catalogFrom, neededCatalog } from './catalog-source.ts'
