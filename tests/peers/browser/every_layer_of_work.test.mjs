import { OF_WORK } from './layers.mjs'
import { sweep } from './sweep.mjs'

sweep(OF_WORK)
